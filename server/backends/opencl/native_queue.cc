// SPDX-License-Identifier: Apache-2.0
#include "server/backends/opencl/native_queue.h"

#include <utility>

namespace hawser::server::ocl {
namespace {

/// Lists of events to wait for came with this version.
constexpr uint32_t kBarriers = 12;
constexpr uint32_t kProperties = 20;

}  // namespace

cl_command_queue_properties QueueRecipe::bits() const {
  for (size_t i = 0; i + 1 < properties.size(); i += 2) {
    if (properties[i] == CL_QUEUE_PROPERTIES) return properties[i + 1];
  }
  return 0;
}

QueueRecipe QueueRecipe::Measuring() const {
  QueueRecipe recipe = *this;
  const cl_queue_properties all = bits() | CL_QUEUE_PROFILING_ENABLE;
  bool found = false;
  for (size_t i = 0; i + 1 < properties.size(); i += 2) {
    if (properties[i] != CL_QUEUE_PROPERTIES) continue;
    recipe.properties[i + 1] = all;
    found = true;
  }
  if (!found) recipe.properties.insert(recipe.properties.end(), {CL_QUEUE_PROPERTIES, all});
  return recipe;
}

Handle<cl_command_queue> QueueRecipe::Create(cl_int* status) const {
  if (version < kProperties) return Handle<cl_command_queue>(clCreateCommandQueue(context, device, bits(), status));
  std::vector<cl_queue_properties> list = properties;
  list.push_back(0);
  return Handle<cl_command_queue>(clCreateCommandQueueWithProperties(context, device, list.data(), status));
}

cl_int NativeQueue::Create(const QueueRecipe& guest, bool measuring) {
  cl_int status = CL_SUCCESS;
  const bool added = measuring && !guest.measures();
  measuring_ = (added ? guest.Measuring() : guest).Create(&status);
  if (status != CL_SUCCESS) return status;
  may_be_plain_ = added && guest.in_order() && guest.version >= kBarriers;
  if (may_be_plain_) plain_recipe_ = guest;
  current_.store(measuring_.get(), std::memory_order_release);
  return CL_SUCCESS;
}

bool NativeQueue::Switch(cl_command_queue to, cl_event newest) {
  cl_command_queue const from = get();
  if (newest != nullptr) {
    cl_int execution = CL_QUEUED;
    clGetEventInfo(newest, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof(execution), &execution, nullptr);
    // What other queues wait for must have been given to the device.
    if (execution > CL_COMPLETE &&
        (clEnqueueBarrierWithWaitList(to, 1, &newest, nullptr) != CL_SUCCESS || clFlush(from) != CL_SUCCESS)) {
      return false;
    }
  }
  current_.store(to, std::memory_order_release);
  return true;
}

bool NativeQueue::UsePlain(cl_event newest) {
  if (!may_be_plain_ || is_plain()) return false;
  if (!plain_) {
    cl_int status = CL_SUCCESS;
    plain_ = plain_recipe_.Create(&status);
    if (status != CL_SUCCESS) {
      may_be_plain_ = false;
      return false;
    }
  }
  return Switch(plain_.get(), newest);
}

bool NativeQueue::UseMeasuring(cl_event newest) { return !is_plain() || Switch(measuring_.get(), newest); }

Handle<cl_event> NativeQueue::MeasuredEnd(cl_event event) const {
  cl_event end = nullptr;
  if (clFlush(get()) != CL_SUCCESS || clEnqueueMarkerWithWaitList(measuring_.get(), 1, &event, &end) != CL_SUCCESS) {
    return {};
  }
  Handle<cl_event> made(end);
  clFlush(measuring_.get());
  return made;
}

}  // namespace hawser::server::ocl
