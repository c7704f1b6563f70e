// SPDX-License-Identifier: Apache-2.0
// The threads that an OpenCL driver starts to compute with, where the device is the processor.
#ifndef HAWSER_SERVER_BACKENDS_OPENCL_DEVICE_THREADS_H_
#define HAWSER_SERVER_BACKENDS_OPENCL_DEVICE_THREADS_H_

namespace hawser::server::ocl {

/// While it is there, threads that the calling thread starts do not take a processor from another that computes when
/// they wake (wire/short_slice.h). Only where the operator gave PoCL's threads processors of their own
/// (POCL_AFFINITY=1, docs/operating.md); elsewhere a kernel would wait for any other program. Whoever is to have the
/// device next begins while the work before has some 0.1 ms left, and would compute for milliseconds before that ends.
class DeviceThreads {
 public:
  DeviceThreads();
  ~DeviceThreads();
  DeviceThreads(const DeviceThreads&) = delete;
  DeviceThreads& operator=(const DeviceThreads&) = delete;

 private:
  bool taken_ = false;
};

}  // namespace hawser::server::ocl

#endif  // HAWSER_SERVER_BACKENDS_OPENCL_DEVICE_THREADS_H_
