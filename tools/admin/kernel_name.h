// SPDX-License-Identifier: Apache-2.0
// A kernel's name as its programmer wrote it, from the one that CUDA's compilers give it.
//
// Of the Itanium C++ ABI's mangling (section 5.1) what a kernel's name is made of: namespaces, the name, template
// arguments that are numbers, plain types or names of types. Parameters are left away: a timeline has no room for them.
// What is not understood is shown as "…". Not the demangler of the C++ library, for two reasons: recorded names are cut
// where they are long, and they are a guest's, who could have written one that unfolds to gigabytes.
#ifndef HAWSER_TOOLS_ADMIN_KERNEL_NAME_H_
#define HAWSER_TOOLS_ADMIN_KERNEL_NAME_H_

#include <string>
#include <string_view>

namespace hawser::tools {

/// `name` itself if it is not mangled, or not in a way that is understood. Takes time and memory by the length of
/// `name`.
std::string KernelName(std::string_view name);

}  // namespace hawser::tools

#endif  // HAWSER_TOOLS_ADMIN_KERNEL_NAME_H_
