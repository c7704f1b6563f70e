// SPDX-License-Identifier: Apache-2.0
// A driver in this process with two devices, whose memory is host memory and whose kernels are host functions: enough
// to see what the runtime asks of a driver. Not thread safe.
#ifndef HAWSER_TESTS_UNIT_INTERPOSER_CUDART_FAKE_DRIVER_H_
#define HAWSER_TESTS_UNIT_INTERPOSER_CUDART_FAKE_DRIVER_H_

#include <cuda.h>

#include <functional>
#include <map>
#include <string>
#include <vector>

namespace hawser::cudart::testing {

struct FakeLaunch {
  std::string kernel;
  unsigned grid = 0;
  unsigned block = 0;
  unsigned shared_bytes = 0;
  CUstream stream = nullptr;
  int first_argument = 0;  ///< When there is one.
};

struct FakeDriver {
  /// What a test may set.
  int device_count = 2;
  CUresult init_result = CUDA_SUCCESS;
  CUresult load_result = CUDA_SUCCESS;
  CUresult next_sync = CUDA_SUCCESS;                 ///< Of the next cuCtxSynchronize().
  std::map<std::string, std::vector<char>> globals;  ///< Device variables by name.
  std::map<std::string, std::vector<char>> managed;
  bool managed_reachable = true;  ///< By the host.
  std::vector<std::string> kernels;

  /// What the runtime did.
  std::map<std::string, int> calls;  ///< By the name of the function.
  std::vector<FakeLaunch> launches;
  std::vector<const void*> loaded;      ///< Images.
  std::vector<CUstream> async_streams;  ///< Of asynchronous copies and fills.
};

/// A fresh one, and a fresh runtime on it.
FakeDriver& InstallFakeDriver();

}  // namespace hawser::cudart::testing

#endif  // HAWSER_TESTS_UNIT_INTERPOSER_CUDART_FAKE_DRIVER_H_
