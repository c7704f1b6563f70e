// SPDX-License-Identifier: Apache-2.0
// cuMemcpy* of linear memory, cuMemset*.
#include "interposer/cuda/copy.h"
#include "interposer/cuda/host_mirror.h"

using namespace hawser;      // NOLINT(google-build-using-namespace): entry points live outside of namespaces.
using namespace hawser::cu;  // NOLINT(google-build-using-namespace)

namespace {

/// Calls without a stream work on the default stream.
CUresult BeginSynchronous(StreamCommand& command) { return command.Begin(nullptr); }

bool IsHostVisible(CUdeviceptr address) {
  const Client& client = Client::Get();
  // Pinned memory may go by its device address, which is where the heap lies for the server.
  if (client.heap_usable() && address - client.heap_address() < client.session()->heap_size()) return true;
  const auto range = Client::Get().pointers().Find(address);
  return range && (range->is_host() || range->is_managed() || range->mirror);
}

CUresult Fill(CUstream handle, bool synchronous, CUdeviceptr address, size_t pitch, unsigned element, unsigned value,
              size_t width, size_t height) {
  StreamCommand command;
  const CUresult error = synchronous ? BeginSynchronous(command) : command.Begin(handle);
  if (error != CUDA_SUCCESS) return error;
  if (width == 0 || height == 0) return CUDA_SUCCESS;
  if (address == 0 || address % element != 0) return CUDA_ERROR_INVALID_VALUE;
  if (width > UINT64_MAX / element || (height > 1 && (pitch < width * element || pitch % element != 0))) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  if (const CUresult failed = TranslateHostAddress(command.context(), &address); failed != CUDA_SUCCESS) return failed;
  if (const CUresult failed = Mirrors::Get().BeforeCopy(command.stream()); failed != CUDA_SUCCESS) return failed;
  cuda::Memset message;
  message.address = address;
  message.pitch = height > 1 ? pitch : 0;
  message.element = element;
  message.value = value;
  message.width = width;
  message.height = height;
  if (const CUresult failed = command.Send(message); failed != CUDA_SUCCESS) return failed;
  // Of memory that the host can look at, filling without a stream is complete when it returns.
  if (synchronous && IsHostVisible(address)) return SynchronizeStream(command.stream());
  return synchronous ? Settle(command, CUDA_SUCCESS) : CUDA_SUCCESS;
}

}  // namespace

CUresult CUDAAPI cuMemcpyHtoD_v2(CUdeviceptr to, const void* from, size_t size) {
  StreamCommand command;
  const CUresult error = BeginSynchronous(command);
  if (error != CUDA_SUCCESS) return error;
  SynchronousWrite write(command);
  return write.End(CopyToDevice(command, to, from, size, CopyMode::kSynchronous));
}

CUresult CUDAAPI cuMemcpyDtoH_v2(void* to, CUdeviceptr from, size_t size) {
  StreamCommand command;
  const CUresult error = BeginSynchronous(command);
  return error != CUDA_SUCCESS ? error : CopyFromDevice(command, to, from, size, CopyMode::kSynchronous);
}

CUresult CUDAAPI cuMemcpyDtoD_v2(CUdeviceptr to, CUdeviceptr from, size_t size) {
  StreamCommand command;
  const CUresult error = BeginSynchronous(command);
  return error != CUDA_SUCCESS ? error : Settle(command, CopyOnDevice(command, to, from, size));
}

CUresult CUDAAPI cuMemcpy(CUdeviceptr to, CUdeviceptr from, size_t size) {
  StreamCommand command;
  const CUresult error = BeginSynchronous(command);
  if (error != CUDA_SUCCESS) return error;
  if (!IsHostMemory(from)) return Settle(command, CopyUnified(command, to, from, size, CopyMode::kSynchronous));
  SynchronousWrite write(command);
  return write.End(CopyUnified(command, to, from, size, CopyMode::kSynchronous));
}

CUresult CUDAAPI cuMemcpyPeer(CUdeviceptr to, CUcontext to_context, CUdeviceptr from, CUcontext from_context,
                              size_t size) {
  StreamCommand command;
  if (const CUresult error = BeginSynchronous(command); error != CUDA_SUCCESS) return error;
  if (const CUresult error = CheckContext(to_context); error != CUDA_SUCCESS) return error;
  if (const CUresult error = CheckContext(from_context); error != CUDA_SUCCESS) return error;
  return Settle(command, CopyOnDevice(command, to, from, size));
}

CUresult CUDAAPI cuMemcpyHtoDAsync_v2(CUdeviceptr to, const void* from, size_t size, CUstream stream) {
  StreamCommand command;
  const CUresult error = command.Begin(stream);
  return error != CUDA_SUCCESS ? error : CopyToDevice(command, to, from, size, CopyMode::kAsynchronous);
}

CUresult CUDAAPI cuMemcpyDtoHAsync_v2(void* to, CUdeviceptr from, size_t size, CUstream stream) {
  StreamCommand command;
  const CUresult error = command.Begin(stream);
  return error != CUDA_SUCCESS ? error : CopyFromDevice(command, to, from, size, CopyMode::kAsynchronous);
}

CUresult CUDAAPI cuMemcpyDtoDAsync_v2(CUdeviceptr to, CUdeviceptr from, size_t size, CUstream stream) {
  StreamCommand command;
  const CUresult error = command.Begin(stream);
  return error != CUDA_SUCCESS ? error : CopyOnDevice(command, to, from, size);
}

CUresult CUDAAPI cuMemcpyAsync(CUdeviceptr to, CUdeviceptr from, size_t size, CUstream stream) {
  StreamCommand command;
  const CUresult error = command.Begin(stream);
  return error != CUDA_SUCCESS ? error : CopyUnified(command, to, from, size, CopyMode::kAsynchronous);
}

CUresult CUDAAPI cuMemcpyPeerAsync(CUdeviceptr to, CUcontext to_context, CUdeviceptr from, CUcontext from_context,
                                   size_t size, CUstream stream) {
  StreamCommand command;
  if (const CUresult error = command.Begin(stream); error != CUDA_SUCCESS) return error;
  if (const CUresult error = CheckContext(to_context); error != CUDA_SUCCESS) return error;
  if (const CUresult error = CheckContext(from_context); error != CUDA_SUCCESS) return error;
  return CopyOnDevice(command, to, from, size);
}

CUresult CUDAAPI cuMemsetD8_v2(CUdeviceptr address, unsigned char value, size_t count) {
  return Fill(nullptr, true, address, 0, 1, value, count, 1);
}
CUresult CUDAAPI cuMemsetD16_v2(CUdeviceptr address, unsigned short value, size_t count) {
  return Fill(nullptr, true, address, 0, 2, value, count, 1);
}
CUresult CUDAAPI cuMemsetD32_v2(CUdeviceptr address, unsigned int value, size_t count) {
  return Fill(nullptr, true, address, 0, 4, value, count, 1);
}
CUresult CUDAAPI cuMemsetD2D8_v2(CUdeviceptr address, size_t pitch, unsigned char value, size_t width, size_t height) {
  return Fill(nullptr, true, address, pitch, 1, value, width, height);
}
CUresult CUDAAPI cuMemsetD2D16_v2(CUdeviceptr address, size_t pitch, unsigned short value, size_t width,
                                  size_t height) {
  return Fill(nullptr, true, address, pitch, 2, value, width, height);
}
CUresult CUDAAPI cuMemsetD2D32_v2(CUdeviceptr address, size_t pitch, unsigned int value, size_t width, size_t height) {
  return Fill(nullptr, true, address, pitch, 4, value, width, height);
}
CUresult CUDAAPI cuMemsetD8Async(CUdeviceptr address, unsigned char value, size_t count, CUstream stream) {
  return Fill(stream, false, address, 0, 1, value, count, 1);
}
CUresult CUDAAPI cuMemsetD16Async(CUdeviceptr address, unsigned short value, size_t count, CUstream stream) {
  return Fill(stream, false, address, 0, 2, value, count, 1);
}
CUresult CUDAAPI cuMemsetD32Async(CUdeviceptr address, unsigned int value, size_t count, CUstream stream) {
  return Fill(stream, false, address, 0, 4, value, count, 1);
}
CUresult CUDAAPI cuMemsetD2D8Async(CUdeviceptr address, size_t pitch, unsigned char value, size_t width, size_t height,
                                   CUstream stream) {
  return Fill(stream, false, address, pitch, 1, value, width, height);
}
CUresult CUDAAPI cuMemsetD2D16Async(CUdeviceptr address, size_t pitch, unsigned short value, size_t width,
                                    size_t height, CUstream stream) {
  return Fill(stream, false, address, pitch, 2, value, width, height);
}
CUresult CUDAAPI cuMemsetD2D32Async(CUdeviceptr address, size_t pitch, unsigned int value, size_t width, size_t height,
                                    CUstream stream) {
  return Fill(stream, false, address, pitch, 4, value, width, height);
}
