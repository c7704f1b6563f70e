// SPDX-License-Identifier: Apache-2.0
#include "tools/install_layout.h"

#include <filesystem>
#include <fstream>
#include <initializer_list>
#include <system_error>

namespace hawser::tools {
namespace {

namespace fs = std::filesystem;
using wire::Code;
using wire::Status;

/// The first of these that exists, or nothing.
std::string FirstThatExists(std::initializer_list<fs::path> candidates) {
  std::error_code ignored;
  for (const fs::path& path : candidates) {
    if (fs::exists(path, ignored)) return path.lexically_normal().string();
  }
  return "";
}

}  // namespace

std::string LibraryNamedBy(const std::string& icd_file) {
  std::ifstream file(icd_file);
  std::string line;
  std::getline(file, line);
  const size_t end = line.find_last_not_of(" \t\r\n");
  return end == std::string::npos ? "" : line.substr(0, end + 1);
}

InstallLayout FindInstallLayout(const std::string& executable) {
  const fs::path here = fs::path(executable).parent_path();
  const fs::path up = here.parent_path();
  InstallLayout layout;
  const std::string icd = FirstThatExists({up / "icd/hawser.icd", up / "share/hawser/icd/hawser.icd"});
  if (!icd.empty()) {
    layout.icd_directory = fs::path(icd).parent_path().string();
    layout.client_library = FirstThatExists({LibraryNamedBy(icd)});
  }
  layout.hawserd = FirstThatExists({up / "server/hawserd", here / "hawserd"});
  layout.admin = FirstThatExists({here / "hawser-admin", up / "libexec/hawser/hawser-admin"});
  layout.cuda_bench_worker = FirstThatExists({up / "bench/hawser-bench-cuda", up / "libexec/hawser/hawser-bench-cuda"});
  layout.bench_worker = FirstThatExists({up / "bench/hawser-bench-opencl", up / "libexec/hawser/hawser-bench-opencl"});
  // The client library names the library directory, which differs between distributions.
  const fs::path libraries = layout.client_library.empty() ? up / "lib" : fs::path(layout.client_library).parent_path();
  const auto directory_of = [&](const char* part, const char* file) {
    const std::string found =
        FirstThatExists({up / part / file, libraries / "hawser" / part / file, up / "lib/hawser" / part / file});
    return found.empty() ? found : fs::path(found).parent_path().string();
  };
  layout.cuda_guest_directory = directory_of("guest", "libhawser_preload.so");
  layout.cuda_soft_directory = directory_of("soft", "libcuda.so.1");
  return layout;
}

InstallLayout FindInstallLayout() {
  std::error_code error;
  const fs::path self = fs::read_symlink("/proc/self/exe", error);
  return error ? InstallLayout{} : FindInstallLayout(self.string());
}

Status CheckGuestSide(const InstallLayout& layout) {
  if (layout.icd_directory.empty()) {
    return Status(Code::kInvalid,
                  "hawser.icd is neither beside this program's build tree nor under its install prefix; "
                  "build everything (./hawser build) or install again (cmake --install)");
  }
  if (layout.client_library.empty()) {
    const std::string icd = layout.icd_directory + "/hawser.icd";
    return Status(Code::kInvalid, icd + " names '" + LibraryNamedBy(icd) +
                                      "', which does not exist; build everything (./hawser build) or install again "
                                      "(cmake --install)");
  }
  return Status::Ok();
}

Status CheckSoftDevice(const InstallLayout& layout) {
  if (layout.cuda_soft_directory.empty() || layout.cuda_guest_directory.empty()) {
    const std::string missing = layout.cuda_soft_directory.empty() ? "soft/libcuda.so.1" : "guest/libhawser_preload.so";
    return Status(Code::kInvalid, "the software device is not complete: " + missing +
                                      " is neither in this program's build tree nor under its install prefix; build "
                                      "everything (./hawser build) or install again (cmake --install)");
  }
  return Status::Ok();
}

}  // namespace hawser::tools
