// SPDX-License-Identifier: Apache-2.0
#include <sys/mman.h>

#include <cstring>
#include <numeric>
#include <vector>

#include "tests/unit/softcuda_driver/driver_test.h"

namespace hawser::soft {
namespace {

class SoftMemory : public ContextTest {};

TEST_F(SoftMemory, HoldsWhatIsCopied) {
  std::vector<uint32_t> out(100000);
  std::iota(out.begin(), out.end(), 3);
  const size_t bytes = out.size() * sizeof(out[0]);
  const CUdeviceptr a = Alloc(bytes);
  const CUdeviceptr b = Alloc(bytes);
  EXPECT_EQ(a % 256, 0U);
  EXPECT_CUDA(CUDA_SUCCESS, cuMemcpyHtoD(a, out.data(), bytes));
  EXPECT_CUDA(CUDA_SUCCESS, cuMemcpyDtoD(b, a, bytes));
  std::vector<uint32_t> back(out.size());
  EXPECT_CUDA(CUDA_SUCCESS, cuMemcpy(Address(back.data()), b, bytes));
  EXPECT_EQ(out, back);
  EXPECT_CUDA(CUDA_SUCCESS, cuMemFree(a));
  EXPECT_CUDA(CUDA_ERROR_INVALID_VALUE, cuMemFree(a));
  EXPECT_CUDA(CUDA_ERROR_INVALID_VALUE, cuMemFree(b + 4));
  EXPECT_CUDA(CUDA_ERROR_INVALID_VALUE, cuMemcpyDtoH(back.data(), a, 4));  // Freed.
}

TEST_F(SoftMemory, HasACapacity) {
  size_t free = 0;
  size_t total = 0;
  ASSERT_CUDA(CUDA_SUCCESS, cuMemGetInfo(&free, &total));
  EXPECT_EQ(total, kDeviceBytes);
  CUdeviceptr big = 0;
  EXPECT_CUDA(CUDA_ERROR_OUT_OF_MEMORY, cuMemAlloc(&big, total + 1));
  EXPECT_CUDA(CUDA_ERROR_OUT_OF_MEMORY, cuMemAlloc(&big, SIZE_MAX - 5000));
  EXPECT_CUDA(CUDA_ERROR_INVALID_VALUE, cuMemAlloc(&big, 0));
  ASSERT_CUDA(CUDA_SUCCESS, cuMemAlloc(&big, free));
  CUdeviceptr more = 0;
  EXPECT_CUDA(CUDA_ERROR_OUT_OF_MEMORY, cuMemAlloc(&more, 1));
  EXPECT_CUDA(CUDA_SUCCESS, cuMemFree(big));
  size_t after = 0;
  EXPECT_CUDA(CUDA_SUCCESS, cuMemGetInfo(&after, &total));
  EXPECT_EQ(after, free);
}

TEST_F(SoftMemory, IsBoundExactly) {
  const CUdeviceptr a = Alloc(10);
  char byte = 0;
  EXPECT_CUDA(CUDA_SUCCESS, cuMemcpyHtoD(a + 9, &byte, 1));
  EXPECT_CUDA(CUDA_ERROR_INVALID_VALUE, cuMemcpyHtoD(a + 10, &byte, 1));
  EXPECT_CUDA(CUDA_ERROR_INVALID_VALUE, cuMemsetD8(a, 0, 11));
  EXPECT_CUDA(CUDA_ERROR_INVALID_VALUE, cuMemcpyHtoD(0, &byte, 1));
  EXPECT_CUDA(CUDA_ERROR_INVALID_VALUE, cuMemcpyHtoD(a, &byte, SIZE_MAX));
  // A host pointer is no device pointer, and a device address that is not live no host pointer.
  EXPECT_CUDA(CUDA_ERROR_INVALID_VALUE, cuMemcpyDtoD(a, Address(&byte), 1));
  EXPECT_CUDA(CUDA_ERROR_INVALID_VALUE, cuMemcpy(a, a + 4096, 1));
  EXPECT_CUDA(CUDA_SUCCESS, cuMemcpyDtoH(nullptr, 0, 0));  // Nothing to do.
}

TEST_F(SoftMemory, FillsWordsAndBoxes) {
  const CUdeviceptr a = Alloc(64);
  std::vector<uint8_t> back(64);
  EXPECT_CUDA(CUDA_SUCCESS, cuMemsetD32(a, 0x04030201, 2));
  EXPECT_CUDA(CUDA_SUCCESS, cuMemsetD16(a + 8, 0x0807, 2));
  EXPECT_CUDA(CUDA_SUCCESS, cuMemsetD2D8(a + 16, 8, 9, 2, 3));
  EXPECT_CUDA(CUDA_SUCCESS, cuMemcpyDtoH(back.data(), a, 64));
  const std::vector<uint8_t> start = {1, 2, 3, 4, 1, 2, 3, 4, 7, 8, 7, 8, 0, 0, 0, 0, 9, 9, 0, 0, 0, 0, 0, 0, 9, 9, 0};
  EXPECT_EQ(std::vector<uint8_t>(back.begin(), back.begin() + 27), start);
  EXPECT_CUDA(CUDA_ERROR_INVALID_VALUE, cuMemsetD32(a + 2, 0, 1));         // Not aligned.
  EXPECT_CUDA(CUDA_ERROR_INVALID_VALUE, cuMemsetD2D8(a, 8, 0, 9, 2));      // Rows overlap.
  EXPECT_CUDA(CUDA_ERROR_INVALID_VALUE, cuMemsetD2D8(a, 32, 0, 1, 1000));  // Too far.
}

TEST_F(SoftMemory, CopiesBoxes) {
  size_t pitch = 0;
  CUdeviceptr a = 0;
  ASSERT_CUDA(CUDA_SUCCESS, cuMemAllocPitch(&a, &pitch, 5, 4, 4));
  EXPECT_GE(pitch, 5U);
  std::vector<uint8_t> host(20);
  std::iota(host.begin(), host.end(), 1);
  CUDA_MEMCPY2D copy{};
  copy.srcMemoryType = CU_MEMORYTYPE_HOST;
  copy.srcHost = host.data();
  copy.srcPitch = 5;
  copy.dstMemoryType = CU_MEMORYTYPE_DEVICE;
  copy.dstDevice = a;
  copy.dstPitch = pitch;
  copy.WidthInBytes = 5;
  copy.Height = 4;
  EXPECT_CUDA(CUDA_SUCCESS, cuMemcpy2D(&copy));
  std::vector<uint8_t> part(4);
  CUDA_MEMCPY2D back{};
  back.srcMemoryType = CU_MEMORYTYPE_DEVICE;
  back.srcDevice = a;
  back.srcPitch = pitch;
  back.srcXInBytes = 1;
  back.srcY = 2;
  back.dstMemoryType = CU_MEMORYTYPE_HOST;
  back.dstHost = part.data();
  back.dstPitch = 2;
  back.WidthInBytes = 2;
  back.Height = 2;
  EXPECT_CUDA(CUDA_SUCCESS, cuMemcpy2D(&back));
  EXPECT_EQ(part, (std::vector<uint8_t>{12, 13, 17, 18}));
  copy.Height = 5;  // One row more than there is.
  EXPECT_CUDA(CUDA_ERROR_INVALID_VALUE, cuMemcpy2D(&copy));
  copy.Height = 2;
  copy.dstPitch = 4;  // Less than a row.
  EXPECT_CUDA(CUDA_ERROR_INVALID_VALUE, cuMemcpy2D(&copy));
}

TEST_F(SoftMemory, CopiesBatches) {
  const CUdeviceptr a = Alloc(64);
  const CUdeviceptr b = Alloc(64);
  const CUstream stream = Stream();
  ASSERT_CUDA(CUDA_SUCCESS, cuMemsetD32(a, 3, 1));
  ASSERT_CUDA(CUDA_SUCCESS, cuMemsetD32(a + 4, 4, 1));
  CUdeviceptr to[] = {b + 8, b};
  CUdeviceptr from[] = {a, a + 4};
  size_t sizes[] = {4, 4};
  CUmemcpyAttributes attributes{};
  attributes.srcAccessOrder = CU_MEMCPY_SRC_ACCESS_ORDER_STREAM;
  size_t index = 0;
  EXPECT_CUDA(CUDA_SUCCESS, cuMemcpyBatchAsync(to, from, sizes, 2, &attributes, &index, 1, stream));
  EXPECT_CUDA(CUDA_SUCCESS, cuStreamSynchronize(stream));
  EXPECT_EQ(Read(b + 8), 3U);
  EXPECT_EQ(Read(b), 4U);
  sizes[1] = 100;  // Too far.
  EXPECT_CUDA(CUDA_ERROR_INVALID_VALUE, cuMemcpyBatchAsync(to, from, sizes, 2, &attributes, &index, 1, stream));
  EXPECT_CUDA(CUDA_ERROR_INVALID_VALUE, cuMemcpyBatchAsync(to, from, sizes, 0, &attributes, &index, 1, stream));
}

TEST_F(SoftMemory, PinnedAndRegisteredMemoryIsKnown) {
  void* pinned = nullptr;
  ASSERT_CUDA(CUDA_SUCCESS, cuMemHostAlloc(&pinned, 100, CU_MEMHOSTALLOC_DEVICEMAP));
  CUdeviceptr device = 0;
  EXPECT_CUDA(CUDA_SUCCESS, cuMemHostGetDevicePointer(&device, pinned, 0));
  unsigned type = 0;
  EXPECT_CUDA(CUDA_SUCCESS, cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, device));
  EXPECT_EQ(type, static_cast<unsigned>(CU_MEMORYTYPE_HOST));
  EXPECT_CUDA(CUDA_SUCCESS, cuMemFreeHost(pinned));
  EXPECT_CUDA(CUDA_ERROR_INVALID_VALUE, cuMemFreeHost(pinned));

  std::vector<char> own(10000);
  EXPECT_CUDA(CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED, cuMemHostUnregister(own.data()));
  EXPECT_CUDA(CUDA_SUCCESS, cuMemHostRegister(own.data(), own.size(), 0));
  EXPECT_CUDA(CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED, cuMemHostRegister(own.data() + 10, 10, 0));
  EXPECT_CUDA(CUDA_SUCCESS, cuMemHostUnregister(own.data()));
}

TEST_F(SoftMemory, AnswersAboutPointers) {
  const CUdeviceptr a = Alloc(1000);
  CUdeviceptr base = 0;
  size_t size = 0;
  EXPECT_CUDA(CUDA_SUCCESS, cuMemGetAddressRange(&base, &size, a + 500));
  EXPECT_EQ(base, a);
  EXPECT_EQ(size, 1000U);
  EXPECT_CUDA(CUDA_ERROR_NOT_FOUND, cuMemGetAddressRange(&base, &size, a + 1000));
  CUcontext context = nullptr;
  EXPECT_CUDA(CUDA_SUCCESS, cuPointerGetAttribute(&context, CU_POINTER_ATTRIBUTE_CONTEXT, a));
  EXPECT_EQ(context, context_);
  EXPECT_CUDA(CUDA_ERROR_INVALID_VALUE, cuPointerGetAttribute(&context, CU_POINTER_ATTRIBUTE_CONTEXT, Address(&size)));
  unsigned type = 99;
  unsigned managed = 99;
  CUpointer_attribute attributes[] = {CU_POINTER_ATTRIBUTE_MEMORY_TYPE, CU_POINTER_ATTRIBUTE_IS_MANAGED};
  void* values[] = {&type, &managed};
  EXPECT_CUDA(CUDA_SUCCESS, cuPointerGetAttributes(2, attributes, values, Address(&size)));
  EXPECT_EQ(type, 0U);
  CUdeviceptr shared = 0;
  ASSERT_CUDA(CUDA_SUCCESS, cuMemAllocManaged(&shared, 64, CU_MEM_ATTACH_GLOBAL));
  EXPECT_CUDA(CUDA_SUCCESS, cuPointerGetAttributes(2, attributes, values, shared));
  EXPECT_EQ(type, static_cast<unsigned>(CU_MEMORYTYPE_DEVICE));
  EXPECT_EQ(managed, 1U);
  *reinterpret_cast<int*>(shared) = 5;  // Host and device see the same bytes.
  EXPECT_EQ(Read(shared), 5U);
}

TEST_F(SoftMemory, StreamOrderedMemoryComesAndGoes) {
  CUmemoryPool pool = nullptr;
  ASSERT_CUDA(CUDA_SUCCESS, cuDeviceGetDefaultMemPool(&pool, 0));
  const CUstream stream = Stream();
  CUdeviceptr a = 0;
  ASSERT_CUDA(CUDA_SUCCESS, cuMemAllocAsync(&a, size_t{200} << 20, stream));
  cuuint64_t used = 0;
  EXPECT_CUDA(CUDA_SUCCESS, cuMemPoolGetAttribute(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT, &used));
  EXPECT_EQ(used, uint64_t{200} << 20);
  EXPECT_CUDA(CUDA_SUCCESS, cuMemsetD32Async(a, 7, 1000, stream));
  EXPECT_CUDA(CUDA_SUCCESS, cuMemFreeAsync(a, stream));
  CUdeviceptr b = 0;
  EXPECT_CUDA(CUDA_SUCCESS, cuMemAllocAsync(&b, size_t{200} << 20, stream));  // Only fits after the free.
  EXPECT_CUDA(CUDA_ERROR_OUT_OF_MEMORY, cuMemAllocAsync(&a, size_t{200} << 20, stream));
  EXPECT_CUDA(CUDA_SUCCESS, cuMemFreeAsync(b, stream));
  EXPECT_CUDA(CUDA_SUCCESS, cuStreamSynchronize(stream));
  EXPECT_CUDA(CUDA_SUCCESS, cuMemPoolGetAttribute(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT, &used));
  EXPECT_EQ(used, 0U);
  EXPECT_CUDA(CUDA_ERROR_INVALID_VALUE, cuMemFreeAsync(b, stream));
}

class SoftVirtualMemory : public ContextTest {
 protected:
  static constexpr size_t kChunk = size_t{2} << 20;
  CUmemAllocationProp Properties() {
    CUmemAllocationProp properties{};
    properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
    properties.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    return properties;
  }
  CUmemGenericAllocationHandle Chunk(size_t size) {
    const CUmemAllocationProp properties = Properties();
    CUmemGenericAllocationHandle handle = 0;
    EXPECT_CUDA(CUDA_SUCCESS, cuMemCreate(&handle, size, &properties, 0));
    return handle;
  }
  CUresult Access(CUdeviceptr address, size_t size, CUmemAccess_flags flags) {
    CUmemAccessDesc access{};
    access.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    access.flags = flags;
    return cuMemSetAccess(address, size, &access, 1);
  }
};

TEST_F(SoftVirtualMemory, FollowsTheRules) {
  const CUmemAllocationProp properties = Properties();
  size_t granularity = 0;
  ASSERT_CUDA(CUDA_SUCCESS, cuMemGetAllocationGranularity(&granularity, &properties, CU_MEM_ALLOC_GRANULARITY_MINIMUM));
  ASSERT_EQ(granularity, kChunk);
  CUdeviceptr range = 0;
  EXPECT_CUDA(CUDA_ERROR_INVALID_VALUE, cuMemAddressReserve(&range, 4096, 0, 0, 0));
  ASSERT_CUDA(CUDA_SUCCESS, cuMemAddressReserve(&range, 4 * kChunk, 0, 0, 0));
  EXPECT_EQ(range % kChunk, 0U);
  const CUmemGenericAllocationHandle chunk = Chunk(2 * kChunk);
  EXPECT_CUDA(CUDA_ERROR_INVALID_VALUE, cuMemMap(range + 4096, kChunk, 0, chunk, 0));
  EXPECT_CUDA(CUDA_ERROR_INVALID_VALUE, cuMemMap(range + 3 * kChunk, 2 * kChunk, 0, chunk, 0));  // Sticks out.
  EXPECT_CUDA(CUDA_ERROR_INVALID_VALUE, cuMemMap(range, 3 * kChunk, 0, chunk, 0));               // Too little.
  ASSERT_CUDA(CUDA_SUCCESS, cuMemMap(range, 2 * kChunk, 0, chunk, 0));
  EXPECT_CUDA(CUDA_ERROR_INVALID_VALUE, cuMemMap(range + kChunk, kChunk, 0, chunk, 0));  // Taken.
  EXPECT_CUDA(CUDA_ERROR_INVALID_VALUE, cuMemsetD8(range, 1, 1));                        // No access yet.
  ASSERT_CUDA(CUDA_SUCCESS, Access(range, 2 * kChunk, CU_MEM_ACCESS_FLAGS_PROT_READWRITE));
  EXPECT_CUDA(CUDA_SUCCESS, cuMemsetD8(range, 1, 2 * kChunk));
  EXPECT_CUDA(CUDA_ERROR_INVALID_VALUE, cuMemsetD8(range, 1, 2 * kChunk + 1));
  EXPECT_CUDA(CUDA_ERROR_INVALID_VALUE, cuMemUnmap(range, kChunk));            // Only as it was mapped.
  EXPECT_CUDA(CUDA_ERROR_INVALID_VALUE, cuMemAddressFree(range, 4 * kChunk));  // Still mapped.
  EXPECT_CUDA(CUDA_SUCCESS, cuMemUnmap(range, 2 * kChunk));
  EXPECT_CUDA(CUDA_SUCCESS, cuMemRelease(chunk));
  EXPECT_CUDA(CUDA_ERROR_INVALID_VALUE, cuMemRelease(chunk));
  EXPECT_CUDA(CUDA_SUCCESS, cuMemAddressFree(range, 4 * kChunk));
}

TEST_F(SoftVirtualMemory, AChunkKeepsItsBytesWhereverItIsMapped) {
  CUdeviceptr range = 0;
  ASSERT_CUDA(CUDA_SUCCESS, cuMemAddressReserve(&range, 4 * kChunk, 0, 0, 0));
  const CUmemGenericAllocationHandle chunk = Chunk(kChunk);
  ASSERT_CUDA(CUDA_SUCCESS, cuMemMap(range, kChunk, 0, chunk, 0));
  ASSERT_CUDA(CUDA_SUCCESS, Access(range, kChunk, CU_MEM_ACCESS_FLAGS_PROT_READWRITE));
  EXPECT_CUDA(CUDA_SUCCESS, cuMemsetD32(range + 64, 77, 1));
  ASSERT_CUDA(CUDA_SUCCESS, cuMemMap(range + 2 * kChunk, kChunk, 0, chunk, 0));  // A second time.
  ASSERT_CUDA(CUDA_SUCCESS, Access(range + 2 * kChunk, kChunk, CU_MEM_ACCESS_FLAGS_PROT_READWRITE));
  EXPECT_EQ(Read(range + 2 * kChunk + 64), 77U);
  EXPECT_CUDA(CUDA_SUCCESS, cuMemUnmap(range, kChunk));
  EXPECT_CUDA(CUDA_SUCCESS, cuMemRelease(chunk));  // The mapping keeps it.
  EXPECT_EQ(Read(range + 2 * kChunk + 64), 77U);
  size_t free = 0;
  size_t total = 0;
  EXPECT_CUDA(CUDA_SUCCESS, cuMemGetInfo(&free, &total));
  EXPECT_EQ(total - free, kChunk);
  EXPECT_CUDA(CUDA_SUCCESS, cuMemUnmap(range + 2 * kChunk, kChunk));
  EXPECT_CUDA(CUDA_SUCCESS, cuMemGetInfo(&free, &total));
  EXPECT_EQ(free, total);
  EXPECT_CUDA(CUDA_SUCCESS, cuMemAddressFree(range, 4 * kChunk));
}

TEST_F(SoftVirtualMemory, NeighbouringChunksAreOneRangeForCopies) {
  CUdeviceptr range = 0;
  ASSERT_CUDA(CUDA_SUCCESS, cuMemAddressReserve(&range, 2 * kChunk, 0, 0, 0));
  const CUmemGenericAllocationHandle chunks[] = {Chunk(kChunk), Chunk(kChunk)};
  ASSERT_CUDA(CUDA_SUCCESS, cuMemMap(range, kChunk, 0, chunks[0], 0));
  ASSERT_CUDA(CUDA_SUCCESS, cuMemMap(range + kChunk, kChunk, 0, chunks[1], 0));
  ASSERT_CUDA(CUDA_SUCCESS, Access(range, 2 * kChunk, CU_MEM_ACCESS_FLAGS_PROT_READWRITE));
  EXPECT_CUDA(CUDA_SUCCESS, cuMemsetD8(range, 3, 2 * kChunk));
  EXPECT_EQ(Read(range + kChunk - 4), 0x03030303U);
  EXPECT_CUDA(CUDA_SUCCESS, cuMemUnmap(range, 2 * kChunk));
  for (const CUmemGenericAllocationHandle chunk : chunks) EXPECT_CUDA(CUDA_SUCCESS, cuMemRelease(chunk));
  EXPECT_CUDA(CUDA_SUCCESS, cuMemAddressFree(range, 2 * kChunk));
}

TEST_F(SoftVirtualMemory, MemoryThatMayOnlyBeReadIsNotWritten) {
  CUdeviceptr range = 0;
  ASSERT_CUDA(CUDA_SUCCESS, cuMemAddressReserve(&range, kChunk, 0, 0, 0));
  const CUmemGenericAllocationHandle chunk = Chunk(kChunk);
  ASSERT_CUDA(CUDA_SUCCESS, cuMemMap(range, kChunk, 0, chunk, 0));
  ASSERT_CUDA(CUDA_SUCCESS, Access(range, kChunk, CU_MEM_ACCESS_FLAGS_PROT_READ));
  const CUdeviceptr other = Alloc(64);
  const uint32_t value = 5;
  EXPECT_CUDA(CUDA_ERROR_INVALID_VALUE, cuMemsetD32(range, value, 1));
  EXPECT_CUDA(CUDA_ERROR_INVALID_VALUE, cuMemcpyHtoD(range, &value, 4));
  EXPECT_CUDA(CUDA_ERROR_INVALID_VALUE, cuMemcpyDtoD(range, other, 4));
  EXPECT_CUDA(CUDA_ERROR_INVALID_VALUE, cuStreamWriteValue32(nullptr, range, value, 0));
  CUstreamBatchMemOpParams write{};
  write.writeValue.operation = CU_STREAM_MEM_OP_WRITE_VALUE_32;
  write.writeValue.address = range;
  EXPECT_CUDA(CUDA_ERROR_INVALID_VALUE, cuStreamBatchMemOp(nullptr, 1, &write, 0));
  CUgraph graph = nullptr;
  ASSERT_CUDA(CUDA_SUCCESS, cuGraphCreate(&graph, 0));
  CUcontext context = nullptr;
  ASSERT_CUDA(CUDA_SUCCESS, cuCtxGetCurrent(&context));
  const CUDA_BATCH_MEM_OP_NODE_PARAMS writes{.ctx = context, .count = 1, .paramArray = &write, .flags = 0};
  CUgraphNode node = nullptr;
  EXPECT_CUDA(CUDA_ERROR_INVALID_VALUE, cuGraphAddBatchMemOpNode(&node, graph, nullptr, 0, &writes));
  write.writeValue.address = other + 2;
  EXPECT_CUDA(CUDA_ERROR_INVALID_VALUE, cuGraphAddBatchMemOpNode(&node, graph, nullptr, 0, &writes)) << "misaligned";
  EXPECT_CUDA(CUDA_SUCCESS, cuGraphDestroy(graph));
  EXPECT_CUDA(CUDA_SUCCESS, cuMemcpyDtoD(other, range, 4));
  EXPECT_EQ(Read(range), 0U);
  EXPECT_CUDA(CUDA_SUCCESS, cuMemUnmap(range, kChunk));
  EXPECT_CUDA(CUDA_SUCCESS, cuMemRelease(chunk));
  EXPECT_CUDA(CUDA_SUCCESS, cuMemAddressFree(range, kChunk));
}

class SoftArray : public ContextTest {};

TEST_F(SoftArray, TexturesNameTheirMemory) {
  CUDA_ARRAY_DESCRIPTOR shape{8, 8, CU_AD_FORMAT_FLOAT, 1};
  CUarray array = nullptr;
  ASSERT_CUDA(CUDA_SUCCESS, cuArrayCreate(&array, &shape));
  CUDA_RESOURCE_DESC resource{};
  resource.resType = CU_RESOURCE_TYPE_ARRAY;
  resource.res.array.hArray = array;
  CUDA_TEXTURE_DESC texture{};
  texture.filterMode = CU_TR_FILTER_MODE_LINEAR;
  CUtexObject object = 0;
  ASSERT_CUDA(CUDA_SUCCESS, cuTexObjectCreate(&object, &resource, &texture, nullptr));
  CUDA_TEXTURE_DESC back{};
  EXPECT_CUDA(CUDA_SUCCESS, cuTexObjectGetTextureDesc(&back, object));
  EXPECT_EQ(back.filterMode, CU_TR_FILTER_MODE_LINEAR);
  EXPECT_CUDA(CUDA_ERROR_INVALID_VALUE, cuSurfObjectDestroy(object));  // It is a texture.
  EXPECT_CUDA(CUDA_SUCCESS, cuTexObjectDestroy(object));
  EXPECT_CUDA(CUDA_ERROR_INVALID_VALUE, cuTexObjectDestroy(object));
  CUsurfObject surface = 0;
  EXPECT_CUDA(CUDA_SUCCESS, cuSurfObjectCreate(&surface, &resource));
  EXPECT_CUDA(CUDA_SUCCESS, cuSurfObjectDestroy(surface));
  ASSERT_CUDA(CUDA_SUCCESS, cuArrayDestroy(array));
  EXPECT_CUDA(CUDA_ERROR_INVALID_HANDLE, cuTexObjectCreate(&object, &resource, &texture, nullptr));
  resource.resType = CU_RESOURCE_TYPE_LINEAR;
  resource.res.linear.devPtr = Alloc(64);
  resource.res.linear.format = CU_AD_FORMAT_FLOAT;
  resource.res.linear.numChannels = 1;
  resource.res.linear.sizeInBytes = 65;  // One more than there is.
  EXPECT_CUDA(CUDA_ERROR_INVALID_VALUE, cuTexObjectCreate(&object, &resource, &texture, nullptr));
  resource.res.linear.sizeInBytes = 64;
  EXPECT_CUDA(CUDA_SUCCESS, cuTexObjectCreate(&object, &resource, &texture, nullptr));
}

TEST_F(SoftArray, TexturesOverFreedMemoryFault) {
  constexpr char kFetch[] = R"(.version 7.0
.target sm_75
.address_size 64
.visible .entry fetch(.param .u64 t, .param .u32 x, .param .u64 out)
{
  .reg .b32 %x, %v<4>;
  .reg .b64 %t, %out;
  ld.param.u64 %t, [t];
  ld.param.u32 %x, [x];
  ld.param.u64 %out, [out];
  tex.1d.v4.u32.s32 {%v0, %v1, %v2, %v3}, [%t, {%x}];
  st.global.u32 [%out], %v0;
  ret;
}
)";
  ASSERT_CUDA(CUDA_SUCCESS, cuModuleLoadData(&module_, kFetch));
  const CUdeviceptr memory = Alloc(size_t{4} << 20);
  const CUdeviceptr out = Alloc(4);
  ASSERT_CUDA(CUDA_SUCCESS, cuMemsetD32(memory, 41, 1 << 20));
  CUDA_RESOURCE_DESC resource{};
  resource.resType = CU_RESOURCE_TYPE_LINEAR;
  resource.res.linear.devPtr = memory;
  resource.res.linear.format = CU_AD_FORMAT_UNSIGNED_INT32;
  resource.res.linear.numChannels = 1;
  resource.res.linear.sizeInBytes = size_t{4} << 20;
  CUDA_TEXTURE_DESC texture{};
  texture.flags = CU_TRSF_READ_AS_INTEGER;
  CUtexObject linear = 0;
  ASSERT_CUDA(CUDA_SUCCESS, cuTexObjectCreate(&linear, &resource, &texture, nullptr));
  ASSERT_CUDA(CUDA_SUCCESS, Launch("fetch", 1, 1, nullptr, linear, (1 << 20) - 1, out));
  EXPECT_EQ(Read(out), 41U);
  ASSERT_CUDA(CUDA_SUCCESS, cuMemFree(memory));
  testing::internal::CaptureStderr();
  ASSERT_CUDA(CUDA_SUCCESS, Launch("fetch", 1, 1, nullptr, linear, 5, out));
  EXPECT_CUDA(CUDA_ERROR_ILLEGAL_ADDRESS, cuCtxSynchronize());
  testing::internal::GetCapturedStderr();
}

TEST_F(SoftArray, MipmapsHalve) {
  CUDA_ARRAY3D_DESCRIPTOR shape{};
  shape.Width = 8;
  shape.Height = 2;
  shape.Format = CU_AD_FORMAT_UNSIGNED_INT8;
  shape.NumChannels = 4;
  CUmipmappedArray mipmap = nullptr;
  ASSERT_CUDA(CUDA_SUCCESS, cuMipmappedArrayCreate(&mipmap, &shape, 10));
  CUarray level = nullptr;
  ASSERT_CUDA(CUDA_SUCCESS, cuMipmappedArrayGetLevel(&level, mipmap, 3));
  CUDA_ARRAY_DESCRIPTOR small{};
  EXPECT_CUDA(CUDA_SUCCESS, cuArrayGetDescriptor(&small, level));
  EXPECT_EQ(small.Width, 1U);
  EXPECT_EQ(small.Height, 1U);
  EXPECT_CUDA(CUDA_ERROR_INVALID_VALUE, cuMipmappedArrayGetLevel(&level, mipmap, 4));
  EXPECT_CUDA(CUDA_SUCCESS, cuMipmappedArrayDestroy(mipmap));
  EXPECT_CUDA(CUDA_ERROR_INVALID_HANDLE, cuMipmappedArrayDestroy(mipmap));
}

TEST_F(SoftArray, HoldsTexels) {
  CUDA_ARRAY3D_DESCRIPTOR shape{};
  shape.Width = 4;
  shape.Height = 3;
  shape.Depth = 2;
  shape.Format = CU_AD_FORMAT_UNSIGNED_INT16;
  shape.NumChannels = 2;
  CUarray array = nullptr;
  ASSERT_CUDA(CUDA_SUCCESS, cuArray3DCreate(&array, &shape));
  CUDA_ARRAY3D_DESCRIPTOR back{};
  EXPECT_CUDA(CUDA_SUCCESS, cuArray3DGetDescriptor(&back, array));
  EXPECT_EQ(std::memcmp(&shape, &back, sizeof(shape)), 0);
  std::vector<uint32_t> texels(24);
  std::iota(texels.begin(), texels.end(), 100);
  CUDA_MEMCPY3D in{};
  in.srcMemoryType = CU_MEMORYTYPE_HOST;
  in.srcHost = texels.data();
  in.srcPitch = 16;
  in.srcHeight = 3;
  in.dstMemoryType = CU_MEMORYTYPE_ARRAY;
  in.dstArray = array;
  in.WidthInBytes = 16;
  in.Height = 3;
  in.Depth = 2;
  EXPECT_CUDA(CUDA_SUCCESS, cuMemcpy3D(&in));
  uint32_t one = 0;
  CUDA_MEMCPY3D out{};
  out.srcMemoryType = CU_MEMORYTYPE_ARRAY;
  out.srcArray = array;
  out.srcXInBytes = 8;
  out.srcY = 1;
  out.srcZ = 1;
  out.dstMemoryType = CU_MEMORYTYPE_HOST;
  out.dstHost = &one;
  out.WidthInBytes = 4;
  out.Height = 1;
  out.Depth = 1;
  EXPECT_CUDA(CUDA_SUCCESS, cuMemcpy3D(&out));
  EXPECT_EQ(one, texels[12 + 4 + 2]);
  out.srcXInBytes = 16;
  EXPECT_CUDA(CUDA_ERROR_INVALID_VALUE, cuMemcpy3D(&out));
  EXPECT_CUDA(CUDA_SUCCESS, cuArrayDestroy(array));
  EXPECT_CUDA(CUDA_ERROR_INVALID_HANDLE, cuArrayDestroy(array));
  shape.NumChannels = 3;
  EXPECT_CUDA(CUDA_ERROR_INVALID_VALUE, cuArray3DCreate(&array, &shape));
}

}  // namespace
}  // namespace hawser::soft
