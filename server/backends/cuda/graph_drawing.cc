// SPDX-License-Identifier: Apache-2.0
// Pictures of graphs: drivers write them to a file that they are given the name of.
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "server/backends/cuda/backend.h"

namespace hawser::server::cuda_backend {
namespace {

// A node takes some hundred bytes, or thousands with all flags; a frame has 64 MiB.
constexpr off_t kLongestDrawing = 32 << 20;

// False when it cannot be read as a whole.
bool ReadAll(int file, std::string* text) {
  struct stat info {};
  if (::fstat(file, &info) != 0 || info.st_size > kLongestDrawing) return false;
  text->resize(static_cast<size_t>(info.st_size));
  for (size_t at = 0; at < text->size();) {
    const ssize_t got = ::pread(file, text->data() + at, text->size() - at, static_cast<off_t>(at));
    if (got <= 0) return false;
    at += static_cast<size_t>(got);
  }
  return true;
}

}  // namespace

int32_t CudaBackend::DrawGraph(const cuda::Call& call, const cuda::DrawGraph& message) {
  cuda::Drawing reply;
  std::string text;
  const Graph* graph = Use<Graph>(message.graph, &reply.status);
  if (graph != nullptr && driver_.cuGraphDebugDotPrint == nullptr) reply.status = kNotSupported;
  if (reply.status == 0) {
    // In memory: the worker has no folder of its own.
    const wire::Fd file(::memfd_create("hawser-graph", MFD_CLOEXEC));
    const std::string path = "/proc/self/fd/" + std::to_string(file.get());
    if (!file.valid()) {
      reply.status = CUDA_ERROR_OPERATING_SYSTEM;
    } else {
      reply.status = driver_.cuGraphDebugDotPrint(graph->native, path.c_str(), message.flags);
      if (reply.status == 0 && !ReadAll(file.get(), &text)) reply.status = CUDA_ERROR_OPERATING_SYSTEM;
    }
  }
  reason_.clear();
  if (reply.status == 0) reply.text = text;
  Reply(call, reply);
  return 0;
}

}  // namespace hawser::server::cuda_backend
