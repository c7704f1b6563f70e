// SPDX-License-Identifier: Apache-2.0
// Which extensions of the server's devices a guest may see: those that need no host function which does not cross the
// wire. Pure functions.
#ifndef HAWSER_INTERPOSER_OPENCL_EXTENSION_FILTER_H_
#define HAWSER_INTERPOSER_OPENCL_EXTENSION_FILTER_H_

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace hawser::ocl {

bool ExtensionWorksRemotely(std::string_view name);

/// The names of a list separated by blanks that work remotely, in their order, with the blanks between them.
std::string FilterExtensionList(std::string_view list);

/// The same for an array of cl_name_version in raw bytes. A length that is no multiple of the element's gives none.
std::vector<std::byte> FilterExtensionVersions(std::span<const std::byte> versions);

/// Whether a list separated by blanks has the name.
bool HasExtension(std::string_view list, std::string_view name);

}  // namespace hawser::ocl

#endif  // HAWSER_INTERPOSER_OPENCL_EXTENSION_FILTER_H_
