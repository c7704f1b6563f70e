// SPDX-License-Identifier: Apache-2.0
// What must be known of a kernel before it is split, from the text of its program.
//
// A part of a launch is a launch of its own, with a global offset. Five built-ins then give other values
// (reference: OpenCL C 6.15.1; verified on PoCL, oclgrind and rusticl): get_group_id, get_num_groups, get_global_size,
// get_global_offset, get_global_linear_id. A kernel that names none of them, nor does anything that it names, can be
// split as it is. One that does needs the prelude of carry.h. get_enqueued_local_size, get_local_*, sub-group
// built-ins, barriers and local memory see no difference, because a work-group is never divided.
//
// Never split: kernels that may wait for another work-group (loop_scan.h), that enqueue kernels themselves, or that use
// pipes (the order of packets would show). printf is no reason: the order of work-groups' output is undefined anyway,
// and parts run in ascending order. Unknown means whole: programs from binaries, #include, build options that are not
// known here, text that cannot be understood with certainty. Programs in intermediate language: il/il_scan.cc.
#ifndef HAWSER_SERVER_BACKENDS_OPENCL_SLICING_KERNEL_SCAN_H_
#define HAWSER_SERVER_BACKENDS_OPENCL_SLICING_KERNEL_SCAN_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>

namespace hawser::server::slicing {

struct KernelTraits {
  bool may_split = false;       ///< Otherwise it runs whole; `reason` says why.
  bool needs_carry = false;     ///< Uses built-ins that change under an offset.
  bool sees_local_size = true;  ///< How work-items are grouped may show: it must not be chosen for the guest.
  std::string reason;
};

/// What was found of a kernel and of all that it calls.
struct KernelFindings {
  bool affected = false;  ///< Uses built-ins that change under an offset.
  bool groups = false;    ///< Shows how work-items are grouped.
  bool waits = false;     ///< May wait for another work-group.
  bool enqueues = false;
  bool pipes = false;
  std::string unknown;  ///< Why nothing is certain; empty: the rest is.
};

class ProgramTraits {
 public:
  /// Looks at a program; `options` as for clBuildProgram. Bounded time and memory, for any text.
  static ProgramTraits Scan(std::string_view source, std::string_view options);
  /// The same for a program in intermediate language; in il/il_scan.cc.
  static ProgramTraits ScanIl(std::span<const std::byte> il);
  /// A program of which nothing is known.
  static ProgramTraits Unknown(std::string reason);

  /// Of a kernel by the name that the API has for it.
  const KernelTraits& Of(std::string_view kernel) const;
  /// The prelude of carry.h can be put in front without anybody noticing; otherwise kernels that need it run whole.
  bool may_carry() const { return carry_problem_.empty(); }
  const std::string& carry_problem() const { return carry_problem_; }
  /// Some kernel can be split only with the prelude.
  bool wants_carry() const { return wants_carry_; }

 private:
  void SeeWhatWantsCarry();

  std::map<std::string, KernelTraits, std::less<>> kernels_;
  KernelTraits any_;  ///< Of kernels whose name the text does not show.
  std::string carry_problem_;
  bool wants_carry_ = false;
};

/// `carry_problem`: why the launch's geometry cannot be given to the kernel; empty: it can.
KernelTraits Conclude(const KernelFindings& found, const std::string& carry_problem);

/// A cheap question before Scan(): false is certain.
bool MayNeedCarry(std::string_view source);

}  // namespace hawser::server::slicing

#endif  // HAWSER_SERVER_BACKENDS_OPENCL_SLICING_KERNEL_SCAN_H_
