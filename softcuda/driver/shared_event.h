// SPDX-License-Identifier: Apache-2.0
// An event that several processes record and wait for: a page that they all map. Records are numbered, over all
// processes; to wait for an event is to wait for the record that is the last one then.
//
// A process that dies ends its records with it: each process locks a byte of the file for as long as it lives, and
// whoever waits looks whether the lock of the record's maker is still held.
//
// Threads: any, of any process. Everything in the page is atomic; what another process wrote there is only ever
// compared, or used within bounds.
#ifndef HAWSER_SOFTCUDA_DRIVER_SHARED_EVENT_H_
#define HAWSER_SOFTCUDA_DRIVER_SHARED_EVENT_H_

#include <cuda.h>

#include <cstdint>
#include <functional>
#include <memory>

#include "softcuda/driver/shared_file.h"

namespace hawser::soft {

class SharedEvent {
 public:
  /// A new one; null when the system gives no memory.
  static std::shared_ptr<SharedEvent> Create();
  /// Another process's.
  static CUresult Open(const SharedHandle& handle, std::shared_ptr<SharedEvent>* event);
  ~SharedEvent();
  SharedEvent(const SharedEvent&) = delete;
  SharedEvent& operator=(const SharedEvent&) = delete;

  /// What other processes open it with. CUDA_ERROR_INVALID_HANDLE: this process did not create it.
  CUresult Describe(int device, SharedHandle* handle) const;

  /// A new record, which is the last one from now on; its number.
  uint64_t Begin();
  /// What the record stands for is done.
  void End(uint64_t record);

  /// The last record; 0: there was none.
  uint64_t last() const;
  /// True also when whoever should end it is dead.
  bool Over(uint64_t record) const;
  /// Returns when it is over, or soon after `give_up` is true.
  void Await(uint64_t record, const std::function<bool()>& give_up) const;

 private:
  struct Page;

  SharedEvent(SharedFile file, bool own) : file_(std::move(file)), own_(own) {}
  bool Map();
  bool Done(uint64_t record) const;
  /// Takes a number for this process, and the lock that goes with it.
  bool Join();
  bool MakerIsAlive(uint64_t record) const;

  SharedFile file_;
  const bool own_;
  Page* page_ = nullptr;
  uint32_t number_ = 0;
};

}  // namespace hawser::soft

#endif  // HAWSER_SOFTCUDA_DRIVER_SHARED_EVENT_H_
