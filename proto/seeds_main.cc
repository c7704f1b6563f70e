// SPDX-License-Identifier: Apache-2.0
// hawser-proto-seeds FOLDER: writes a sample frame of everything that a peer can send, one file each,
// below FOLDER/calls, FOLDER/replies, FOLDER/notices and FOLDER/handshake.
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <system_error>

#include "proto/seeds.h"

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: hawser-proto-seeds FOLDER\n");
    return 2;
  }
  hawser::proto::SeedSink sink;
  hawser::opencl::AddSeeds(sink);
  hawser::cuda::AddSeeds(sink);
  hawser::session::AddSeeds(sink);
  for (const hawser::proto::Seed& seed : sink.seeds()) {
    const std::filesystem::path folder = std::filesystem::path(argv[1]) / seed.folder;
    std::error_code error;
    std::filesystem::create_directories(folder, error);
    std::ofstream file(folder / seed.name, std::ios::binary);
    file.write(reinterpret_cast<const char*>(seed.frame.data()), static_cast<std::streamsize>(seed.frame.size()));
    file.close();
    if (!file) {
      std::fprintf(stderr, "hawser-proto-seeds: cannot write %s\n", (folder / seed.name).c_str());
      return 1;
    }
  }
  return 0;
}
