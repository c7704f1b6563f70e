// SPDX-License-Identifier: Apache-2.0
// Coarse-grained shared virtual memory: the same addresses on both sides, moved by maps and copies.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstring>
#include <thread>
#include <vector>

#include "tests/integration/cl_fixture.h"

namespace hawser::test {
namespace {

constexpr const char* kSource = R"(
typedef struct Node { ulong next; uint value; } Node;
kernel void sum(ulong first, global uint* result) {
  uint total = 0;
  for (global Node* at = (global Node*)first; at; at = (global Node*)at->next) total += at->value++;
  *result = total;
}
kernel void add(global uint* data, uint value) { data[get_global_id(0)] += value; }
kernel void slow(global uint* data, uint rounds) {
  uint x = data[0];
  for (uint i = 0; i < rounds; ++i) x = x * 1664525u + 1013904223u;
  data[0] = x;
}
)";
struct Node {
  cl_ulong next;
  cl_uint value;
};

class SvmTest : public ::testing::Test {
 protected:
  SvmTest() : cl_(0, kSource) {}
  void SetUp() override {
    ASSERT_TRUE(cl_.ok());
    cl_device_svm_capabilities capabilities = 0;
    clGetDeviceInfo(cl_.device, CL_DEVICE_SVM_CAPABILITIES, sizeof(capabilities), &capabilities, nullptr);
    if ((capabilities & CL_DEVICE_SVM_COARSE_GRAIN_BUFFER) == 0) GTEST_SKIP() << "the device has no SVM";
  }
  ClSetup cl_;
};

TEST_F(SvmTest, PointersMeanTheSameOnBothSides) {
  constexpr size_t kNodes = 1000;
  auto* nodes = static_cast<Node*>(clSVMAlloc(cl_.context, CL_MEM_READ_WRITE, kNodes * sizeof(Node), 0));
  auto* result = static_cast<cl_uint*>(clSVMAlloc(cl_.context, CL_MEM_READ_WRITE, 4, 0));
  ASSERT_NE(nodes, nullptr);
  ASSERT_NE(result, nullptr);
  ASSERT_EQ(clEnqueueSVMMap(cl_.queue, CL_TRUE, CL_MAP_WRITE_INVALIDATE_REGION, nodes, kNodes * sizeof(Node), 0,
                            nullptr, nullptr),
            CL_SUCCESS);
  cl_uint expected = 0;
  for (size_t i = 0; i < kNodes; ++i) {
    nodes[i].next = i + 1 < kNodes ? reinterpret_cast<cl_ulong>(&nodes[i + 1]) : 0;
    nodes[i].value = static_cast<cl_uint>(i * 3);
    expected += nodes[i].value;
  }
  ASSERT_EQ(clEnqueueSVMUnmap(cl_.queue, nodes, 0, nullptr, nullptr), CL_SUCCESS);
  cl_kernel sum = cl_.Kernel("sum");
  const auto first = reinterpret_cast<cl_ulong>(nodes);
  void* used[] = {nodes};
  ASSERT_EQ(clSetKernelArg(sum, 0, sizeof(first), &first), CL_SUCCESS);
  ASSERT_EQ(clSetKernelArgSVMPointer(sum, 1, result), CL_SUCCESS);
  ASSERT_EQ(clSetKernelExecInfo(sum, CL_KERNEL_EXEC_INFO_SVM_PTRS, sizeof(used), used), CL_SUCCESS);
  const size_t one = 1;
  ASSERT_EQ(clEnqueueNDRangeKernel(cl_.queue, sum, 1, nullptr, &one, nullptr, 0, nullptr, nullptr), CL_SUCCESS);
  cl_event mapped = nullptr;
  ASSERT_EQ(clEnqueueSVMMap(cl_.queue, CL_FALSE, CL_MAP_READ, result, 4, 0, nullptr, &mapped), CL_SUCCESS);
  cl_command_type type = 0;
  ASSERT_EQ(clGetEventInfo(mapped, CL_EVENT_COMMAND_TYPE, sizeof(type), &type, nullptr), CL_SUCCESS);
  EXPECT_EQ(type, cl_command_type{CL_COMMAND_SVM_MAP});
  ASSERT_EQ(clWaitForEvents(1, &mapped), CL_SUCCESS);
  EXPECT_EQ(*result, expected);
  ASSERT_EQ(clEnqueueSVMMap(cl_.queue, CL_TRUE, CL_MAP_READ, nodes, kNodes * sizeof(Node), 0, nullptr, nullptr),
            CL_SUCCESS);
  for (size_t i = 0; i < kNodes; ++i) ASSERT_EQ(nodes[i].value, i * 3 + 1);
  ASSERT_EQ(clEnqueueSVMUnmap(cl_.queue, nodes, 0, nullptr, nullptr), CL_SUCCESS);
  ASSERT_EQ(clEnqueueSVMUnmap(cl_.queue, result, 0, nullptr, nullptr), CL_SUCCESS);
  ASSERT_EQ(clFinish(cl_.queue), CL_SUCCESS);
  clReleaseEvent(mapped);
  clReleaseKernel(sum);
  clSVMFree(cl_.context, nodes);
  clSVMFree(cl_.context, result);
}

TEST_F(SvmTest, CopiesAndFills) {
  for (const size_t size : {size_t{64}, size_t{100000}, size_t{6} << 20}) {
    auto* a = static_cast<unsigned char*>(clSVMAlloc(cl_.context, 0, size, 64));
    auto* b = static_cast<unsigned char*>(clSVMAlloc(cl_.context, 0, size, 0));
    ASSERT_NE(a, nullptr);
    ASSERT_NE(b, nullptr);
    std::vector<unsigned char> host(size), back(size), plain(size);
    for (size_t i = 0; i < size; ++i) host[i] = static_cast<unsigned char>(i * 7);
    ASSERT_EQ(clEnqueueSVMMemcpy(cl_.queue, CL_FALSE, a, host.data(), size, 0, nullptr, nullptr), CL_SUCCESS);
    ASSERT_EQ(clEnqueueSVMMemcpy(cl_.queue, CL_FALSE, b, a, size, 0, nullptr, nullptr), CL_SUCCESS);
    ASSERT_EQ(clEnqueueSVMMemcpy(cl_.queue, CL_TRUE, back.data(), b, size, 0, nullptr, nullptr), CL_SUCCESS);
    EXPECT_EQ(back, host);
    ASSERT_EQ(clEnqueueSVMMemcpy(cl_.queue, CL_TRUE, plain.data(), host.data(), size, 0, nullptr, nullptr), CL_SUCCESS);
    EXPECT_EQ(plain, host);
    const cl_uint pattern = 0xa1b2c3d4;
    ASSERT_EQ(clEnqueueSVMMemFill(cl_.queue, a, &pattern, 4, size / 4 * 4, 0, nullptr, nullptr), CL_SUCCESS);
    ASSERT_EQ(clEnqueueSVMMemcpy(cl_.queue, CL_TRUE, back.data(), a, size, 0, nullptr, nullptr), CL_SUCCESS);
    for (size_t i = 0; i + 4 <= size; i += 4) ASSERT_EQ(std::memcmp(&back[i], &pattern, 4), 0) << i;
    EXPECT_EQ(clEnqueueSVMMemcpy(cl_.queue, CL_TRUE, a, a + 1, size - 1, 0, nullptr, nullptr), CL_MEM_COPY_OVERLAP);
    EXPECT_EQ(clEnqueueSVMMemcpy(cl_.queue, CL_TRUE, nullptr, a, size, 0, nullptr, nullptr), CL_INVALID_VALUE);
    const void* pointers[] = {a};
    EXPECT_EQ(clEnqueueSVMMigrateMem(cl_.queue, 1, pointers, nullptr, 0, 0, nullptr, nullptr), CL_SUCCESS);
    ASSERT_EQ(clFinish(cl_.queue), CL_SUCCESS);
    clSVMFree(cl_.context, a);
    clSVMFree(cl_.context, b);
  }
}

TEST_F(SvmTest, ManyAllocationsLiveTogether) {
  std::vector<std::pair<unsigned char*, size_t>> ranges;
  for (size_t i = 0; i < 200; ++i) {
    const size_t size = 1 + i * i % 9000;
    auto* memory = static_cast<unsigned char*>(clSVMAlloc(cl_.context, 0, size, 0));
    ASSERT_NE(memory, nullptr) << i;
    ranges.emplace_back(memory, size);
    const cl_uchar mark = static_cast<cl_uchar>(i);
    ASSERT_EQ(clEnqueueSVMMemFill(cl_.queue, memory, &mark, 1, size, 0, nullptr, nullptr), CL_SUCCESS);
    if (i % 3 == 2) {
      clFinish(cl_.queue);
      clSVMFree(cl_.context, ranges[i / 2].first);
      ranges[i / 2].first = nullptr;
    }
  }
  for (size_t i = 0; i < ranges.size(); ++i) {
    auto [memory, size] = ranges[i];
    if (memory == nullptr) continue;
    ASSERT_EQ(clEnqueueSVMMap(cl_.queue, CL_TRUE, CL_MAP_READ, memory, size, 0, nullptr, nullptr), CL_SUCCESS);
    EXPECT_EQ(memory[0], static_cast<unsigned char>(i));
    EXPECT_EQ(memory[size - 1], static_cast<unsigned char>(i));
    ASSERT_EQ(clEnqueueSVMUnmap(cl_.queue, memory, 0, nullptr, nullptr), CL_SUCCESS);
  }
  clFinish(cl_.queue);
  for (auto& range : ranges) clSVMFree(cl_.context, range.first);
}

TEST_F(SvmTest, FreesInTheQueue) {
  auto* memory = clSVMAlloc(cl_.context, 0, 4096, 0);
  ASSERT_NE(memory, nullptr);
  cl_event freed = nullptr;
  void* pointers[] = {memory};
  ASSERT_EQ(clEnqueueSVMFree(cl_.queue, 1, pointers, nullptr, nullptr, 0, nullptr, &freed), CL_SUCCESS);
  ASSERT_EQ(clWaitForEvents(1, &freed), CL_SUCCESS);
  clReleaseEvent(freed);
  struct Freed {
    cl_context context;
    std::atomic<int> count{0};
    void* pointer = nullptr;
  } seen;
  seen.context = cl_.context;
  memory = clSVMAlloc(cl_.context, 0, 4096, 0);
  ASSERT_NE(memory, nullptr);
  pointers[0] = memory;
  const auto function = +[](cl_command_queue, cl_uint count, void* list[], void* data) {
    auto* to = static_cast<Freed*>(data);
    to->pointer = list[0];
    for (cl_uint i = 0; i < count; ++i) clSVMFree(to->context, list[i]);
    to->count.fetch_add(static_cast<int>(count));
  };
  ASSERT_EQ(clEnqueueSVMFree(cl_.queue, 1, pointers, function, &seen, 0, nullptr, &freed), CL_SUCCESS);
  pointers[0] = nullptr;  // The call keeps its own list.
  ASSERT_EQ(clWaitForEvents(1, &freed), CL_SUCCESS);
  EXPECT_EQ(seen.count.load(), 1);  // The function is the command.
  EXPECT_EQ(seen.pointer, memory);
  clReleaseEvent(freed);
}

TEST_F(SvmTest, RefusesWhatCannotBe) {
  EXPECT_EQ(clSVMAlloc(cl_.context, 0, 0, 0), nullptr);
  EXPECT_EQ(clSVMAlloc(cl_.context, 0, 64, 3), nullptr);
  EXPECT_EQ(clSVMAlloc(cl_.context, 0, size_t{1} << 60, 0), nullptr);
  EXPECT_EQ(clSVMAlloc(cl_.context, CL_MEM_READ_ONLY | CL_MEM_WRITE_ONLY, 64, 0), nullptr);
  EXPECT_EQ(clSVMAlloc(cl_.context, CL_MEM_SVM_ATOMICS, 64, 0), nullptr);
  clSVMFree(cl_.context, nullptr);
}

TEST_F(SvmTest, BlockingCopiesFromTheHostAreSeenInOtherQueues) {
  constexpr size_t kWords = 1024;
  cl_command_queue other = cl_.NewQueue(0);
  ASSERT_NE(other, nullptr);
  auto* shared = static_cast<cl_uint*>(clSVMAlloc(cl_.context, CL_MEM_READ_WRITE, kWords * 4, 0));
  auto* busy = static_cast<cl_uint*>(clSVMAlloc(cl_.context, CL_MEM_READ_WRITE, kWords * 4, 0));
  ASSERT_NE(shared, nullptr);
  ASSERT_NE(busy, nullptr);
  const cl_uint zero = 0, seven = 7, rounds = 60000000;
  ASSERT_EQ(clEnqueueSVMMemFill(cl_.queue, shared, &zero, 4, kWords * 4, 0, nullptr, nullptr), CL_SUCCESS);
  ASSERT_EQ(clEnqueueSVMMemFill(cl_.queue, busy, &zero, 4, kWords * 4, 0, nullptr, nullptr), CL_SUCCESS);
  ASSERT_EQ(clFinish(cl_.queue), CL_SUCCESS);
  cl_kernel slow = cl_.Kernel("slow"), add = cl_.Kernel("add");
  const size_t one = 1, all = kWords;
  ASSERT_EQ(clSetKernelArgSVMPointer(slow, 0, busy), CL_SUCCESS);
  ASSERT_EQ(clSetKernelArg(slow, 1, sizeof(rounds), &rounds), CL_SUCCESS);
  ASSERT_EQ(clEnqueueNDRangeKernel(cl_.queue, slow, 1, nullptr, &one, nullptr, 0, nullptr, nullptr), CL_SUCCESS);
  const std::vector<cl_uint> values(kWords, 100);
  ASSERT_EQ(clEnqueueSVMMemcpy(cl_.queue, CL_TRUE, shared, values.data(), kWords * 4, 0, nullptr, nullptr), CL_SUCCESS);
  ASSERT_EQ(clSetKernelArgSVMPointer(add, 0, shared), CL_SUCCESS);
  ASSERT_EQ(clSetKernelArg(add, 1, sizeof(seven), &seven), CL_SUCCESS);
  ASSERT_EQ(clEnqueueNDRangeKernel(other, add, 1, nullptr, &all, nullptr, 0, nullptr, nullptr), CL_SUCCESS);
  ASSERT_EQ(clFinish(other), CL_SUCCESS);
  ASSERT_EQ(clFinish(cl_.queue), CL_SUCCESS);
  std::vector<cl_uint> back(kWords);
  ASSERT_EQ(clEnqueueSVMMemcpy(other, CL_TRUE, back.data(), shared, kWords * 4, 0, nullptr, nullptr), CL_SUCCESS);
  EXPECT_EQ(back, std::vector<cl_uint>(kWords, 107));
  clSVMFree(cl_.context, shared);
  clSVMFree(cl_.context, busy);
  clReleaseKernel(slow);
  clReleaseKernel(add);
  clReleaseCommandQueue(other);
}

}  // namespace
}  // namespace hawser::test
