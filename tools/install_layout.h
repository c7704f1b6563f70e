// SPDX-License-Identifier: Apache-2.0
// Where the pieces of this installation are, in a build tree or under an install prefix.
#ifndef HAWSER_TOOLS_INSTALL_LAYOUT_H_
#define HAWSER_TOOLS_INSTALL_LAYOUT_H_

#include <string>

#include "wire/status.h"

namespace hawser::tools {

/// Absolute paths. A piece that is not there has an empty path.
struct InstallLayout {
  std::string icd_directory;   ///< Holds hawser.icd and nothing else.
  std::string client_library;  ///< What hawser.icd names.
  std::string hawserd;
  std::string admin;                 ///< hawser-admin
  std::string bench_worker;          ///< hawser-bench-opencl
  std::string cuda_bench_worker;     ///< hawser-bench-cuda
  std::string cuda_guest_directory;  ///< libcuda.so.1 that speaks to a server, libcudart.so.1x, libhawser_preload.so
  std::string cuda_soft_directory;   ///< libcuda.so.1 that computes on the CPU
};

/// Finds the pieces around the `hawser` at `executable` (its real path).
/// Build tree: <build>/tools/hawser (and hawser-admin), <build>/icd, <build>/server/hawserd, <build>/bench,
/// <build>/guest, <build>/soft. Installed: <prefix>/bin/hawser, <prefix>/share/hawser/icd, <prefix>/bin/hawserd,
/// <prefix>/libexec/hawser, <libdir>/hawser/guest, <libdir>/hawser/soft.
InstallLayout FindInstallLayout(const std::string& executable);

/// Of the running program.
InstallLayout FindInstallLayout();

/// Checks that the guest side is complete; the status says what is missing and what to type.
wire::Status CheckGuestSide(const InstallLayout& layout);

/// Checks that CUDA programs can run on the software device without a server.
wire::Status CheckSoftDevice(const InstallLayout& layout);

/// The first line of an .icd file: the library that the loader opens. Empty when there is none.
std::string LibraryNamedBy(const std::string& icd_file);

}  // namespace hawser::tools

#endif  // HAWSER_TOOLS_INSTALL_LAYOUT_H_
