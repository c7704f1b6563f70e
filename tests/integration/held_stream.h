// SPDX-License-Identifier: Apache-2.0
// A CUDA stream that waits for the test.
#ifndef HAWSER_TESTS_INTEGRATION_HELD_STREAM_H_
#define HAWSER_TESTS_INTEGRATION_HELD_STREAM_H_

#include <cuda.h>

#include <future>
#include <utility>

#include "tests/integration/cuda_fixture.h"

namespace hawser {

/// Holds once. Who destroys it, or the context, calls Go() before.
class HeldStream {
 public:
  /// From now on the stream waits until Go().
  void Hold(CUstream stream) {
    const CUDA_HOST_NODE_PARAMS function = HoldingFunction();
    HAWSER_CU(cuLaunchHostFunc(stream, function.fn, function.userData));
  }
  /// The same by a node of a graph, which is to be launched once.
  CUDA_HOST_NODE_PARAMS HoldingFunction() {
    held_ = true;
    CUDA_HOST_NODE_PARAMS function{};
    function.fn = [](void* data) { static_cast<std::promise<void>*>(data)->get_future().wait(); };
    function.userData = &go_;
    return function;
  }
  void Go() {
    if (std::exchange(held_, false)) go_.set_value();
  }

 private:
  std::promise<void> go_;
  bool held_ = false;
};

}  // namespace hawser

#endif  // HAWSER_TESTS_INTEGRATION_HELD_STREAM_H_
