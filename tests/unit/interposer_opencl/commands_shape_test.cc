// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "interposer/opencl/image_shape.h"
#include "interposer/opencl/launch_shape.h"
#include "interposer/opencl/mapping_book.h"
#include "interposer/opencl/mem_flags.h"

namespace hawser::ocl {
namespace {

LaunchLimits Limits() {
  LaunchLimits limits;
  limits.group = 256;
  limits.items[0] = 256;
  limits.items[1] = 64;
  limits.items[2] = 8;
  limits.local_required = false;
  limits.empty_allowed = true;
  return limits;
}

cl_int Shape(const LaunchLimits& limits, cl_uint dimensions, std::vector<size_t> global, std::vector<size_t> local = {},
             std::vector<size_t> offset = {}) {
  bool empty = false;
  const cl_int error =
      CheckShape(limits, dimensions, offset.empty() ? nullptr : offset.data(), global.empty() ? nullptr : global.data(),
                 local.empty() ? nullptr : local.data(), &empty);
  return empty ? 1 : error;
}

TEST(LaunchShapeTest, Dimensions) {
  EXPECT_EQ(Shape(Limits(), 0, {1}), CL_INVALID_WORK_DIMENSION);
  EXPECT_EQ(Shape(Limits(), 4, {1, 1, 1, 1}), CL_INVALID_WORK_DIMENSION);
  EXPECT_EQ(Shape(Limits(), 3, {1, 1, 1}), CL_SUCCESS);
}

TEST(LaunchShapeTest, NothingToRun) {
  LaunchLimits limits = Limits();
  EXPECT_EQ(Shape(limits, 1, {}), 1);
  EXPECT_EQ(Shape(limits, 2, {4, 0}), 1);
  limits.empty_allowed = false;
  EXPECT_EQ(Shape(limits, 1, {}), CL_INVALID_GLOBAL_WORK_SIZE);
  EXPECT_EQ(Shape(limits, 2, {4, 0}), CL_INVALID_GLOBAL_WORK_SIZE);
}

TEST(LaunchShapeTest, LocalSizes) {
  EXPECT_EQ(Shape(Limits(), 1, {256}, {256}), CL_SUCCESS);
  EXPECT_EQ(Shape(Limits(), 1, {512}, {512}), CL_INVALID_WORK_GROUP_SIZE);
  EXPECT_EQ(Shape(Limits(), 3, {16, 16, 16}, {1, 1, 16}), CL_INVALID_WORK_ITEM_SIZE);
  EXPECT_EQ(Shape(Limits(), 1, {10}, {3}), CL_INVALID_WORK_GROUP_SIZE);
  EXPECT_EQ(Shape(Limits(), 1, {10}, {0}), CL_INVALID_WORK_GROUP_SIZE);
  EXPECT_EQ(Shape(Limits(), 2, {SIZE_MAX, SIZE_MAX}, {SIZE_MAX, SIZE_MAX}), CL_INVALID_WORK_GROUP_SIZE);
  LaunchLimits uneven = Limits();
  uneven.non_uniform = true;
  EXPECT_EQ(Shape(uneven, 1, {10}, {3}), CL_SUCCESS);
}

TEST(LaunchShapeTest, RequiredGroups) {
  LaunchLimits limits = Limits();
  limits.required[0] = 8;
  limits.required[1] = limits.required[2] = 1;
  EXPECT_EQ(Shape(limits, 1, {16}, {8}), CL_SUCCESS);
  EXPECT_EQ(Shape(limits, 1, {16}, {4}), CL_INVALID_WORK_GROUP_SIZE);
  EXPECT_EQ(Shape(limits, 2, {16, 2}, {8, 2}), CL_INVALID_WORK_GROUP_SIZE);
  EXPECT_EQ(Shape(limits, 1, {16}), CL_SUCCESS);
  limits.local_required = true;
  EXPECT_EQ(Shape(limits, 1, {16}), CL_INVALID_WORK_GROUP_SIZE);
}

TEST(LaunchShapeTest, OffsetsMustNotOverflow) {
  EXPECT_EQ(Shape(Limits(), 1, {16}, {}, {SIZE_MAX - 16}), CL_SUCCESS);
  EXPECT_EQ(Shape(Limits(), 1, {16}, {}, {SIZE_MAX - 15}), CL_INVALID_GLOBAL_OFFSET);
}

cl_image_desc Describe(cl_mem_object_type type, size_t width, size_t height, size_t depth, size_t layers) {
  cl_image_desc desc = {};
  desc.image_type = type;
  desc.image_width = width;
  desc.image_height = height;
  desc.image_depth = depth;
  desc.image_array_size = layers;
  return desc;
}

TEST(ImageShapeTest, Pitches) {
  cl_image_desc desc = Describe(CL_MEM_OBJECT_IMAGE3D, 5, 4, 3, 0);
  size_t row = 0;
  size_t slice = 0;
  size_t size = 0;
  EXPECT_EQ(ResolveImagePitches(desc, 4, false, &row, &slice, &size), CL_SUCCESS);
  EXPECT_EQ(row, 20u);
  EXPECT_EQ(slice, 80u);
  EXPECT_EQ(size, 240u);
  desc.image_row_pitch = 24;
  EXPECT_EQ(ResolveImagePitches(desc, 4, false, &row, &slice, &size), CL_INVALID_IMAGE_DESCRIPTOR);
  EXPECT_EQ(ResolveImagePitches(desc, 4, true, &row, &slice, &size), CL_SUCCESS);
  EXPECT_EQ(slice, 96u);
  desc.image_row_pitch = 18;
  EXPECT_EQ(ResolveImagePitches(desc, 4, true, &row, &slice, &size), CL_INVALID_IMAGE_DESCRIPTOR);
  desc = Describe(CL_MEM_OBJECT_IMAGE1D_ARRAY, 5, 0, 0, 7);
  EXPECT_EQ(ResolveImagePitches(desc, 4, false, &row, &slice, &size), CL_SUCCESS);
  EXPECT_EQ(slice, 20u);
  EXPECT_EQ(size, 140u);
  desc = Describe(CL_MEM_OBJECT_IMAGE2D, 5, 0, 0, 0);
  EXPECT_EQ(ResolveImagePitches(desc, 4, false, &row, &slice, &size), CL_INVALID_IMAGE_DESCRIPTOR);
}

TEST(ImageShapeTest, Parts) {
  const cl_image_desc desc = Describe(CL_MEM_OBJECT_IMAGE1D_ARRAY, 8, 0, 0, 4);
  const size_t origin[3] = {2, 1, 0};
  const size_t region[3] = {6, 3, 1};
  EXPECT_EQ(CheckImagePart(desc, origin, region), CL_SUCCESS);
  const size_t too_wide[3] = {7, 3, 1};
  EXPECT_EQ(CheckImagePart(desc, origin, too_wide), CL_INVALID_VALUE);
  const size_t deep[3] = {6, 3, 2};
  EXPECT_EQ(CheckImagePart(desc, origin, deep), CL_INVALID_VALUE);
  const size_t empty[3] = {6, 0, 1};
  EXPECT_EQ(CheckImagePart(desc, origin, empty), CL_INVALID_VALUE);
  Region host;
  EXPECT_TRUE(HostRegion(desc, 4, region, 0, 64, &host));
  EXPECT_EQ(host.row_pitch, 64u);  // Layers of 1D images are a slice apart.
  EXPECT_EQ(host.rows, 3u);
  EXPECT_FALSE(HostRegion(desc, 4, region, 23, 0, &host));
}

TEST(MappingBookTest, Flags) {
  EXPECT_EQ(CheckMapFlags(CL_MAP_READ | CL_MAP_WRITE), CL_SUCCESS);
  EXPECT_EQ(CheckMapFlags(CL_MAP_WRITE_INVALIDATE_REGION), CL_SUCCESS);
  EXPECT_EQ(CheckMapFlags(CL_MAP_WRITE_INVALIDATE_REGION | CL_MAP_READ), CL_INVALID_VALUE);
  EXPECT_EQ(CheckMapFlags(8), CL_INVALID_VALUE);
  EXPECT_EQ(CheckMapAccess(CL_MEM_HOST_WRITE_ONLY, CL_MAP_READ), CL_INVALID_OPERATION);
  EXPECT_EQ(CheckMapAccess(CL_MEM_HOST_READ_ONLY, CL_MAP_WRITE_INVALIDATE_REGION), CL_INVALID_OPERATION);
  EXPECT_EQ(CheckMapAccess(CL_MEM_HOST_READ_ONLY, CL_MAP_READ), CL_SUCCESS);
}

TEST(MappingBookTest, TakesEachMappingOnce) {
  int memory[4];
  std::vector<_cl_mem::Mapping> mappings(3);
  mappings[0].pointer = &memory[0];
  mappings[0].flags = CL_MAP_READ;
  mappings[1].pointer = &memory[1];
  mappings[2].pointer = &memory[0];
  mappings[2].flags = CL_MAP_WRITE;
  _cl_mem::Mapping taken;
  EXPECT_TRUE(TakeMapping(mappings, &memory[0], &taken));
  EXPECT_EQ(taken.flags, cl_map_flags{CL_MAP_READ});
  EXPECT_TRUE(TakeMapping(mappings, &memory[0], &taken));
  EXPECT_EQ(taken.flags, cl_map_flags{CL_MAP_WRITE});
  EXPECT_FALSE(TakeMapping(mappings, &memory[0], &taken));
  EXPECT_EQ(mappings.size(), 1u);
}

TEST(MemFlagsTest, Contradictions) {
  EXPECT_EQ(CheckMemFlags(0), CL_SUCCESS);
  EXPECT_EQ(CheckMemFlags(CL_MEM_READ_ONLY | CL_MEM_WRITE_ONLY), CL_INVALID_VALUE);
  EXPECT_EQ(CheckMemFlags(CL_MEM_USE_HOST_PTR | CL_MEM_COPY_HOST_PTR), CL_INVALID_VALUE);
  EXPECT_EQ(CheckMemFlags(CL_MEM_ALLOC_HOST_PTR | CL_MEM_COPY_HOST_PTR), CL_SUCCESS);
  EXPECT_EQ(CheckMemFlags(CL_MEM_HOST_NO_ACCESS | CL_MEM_HOST_READ_ONLY), CL_INVALID_VALUE);
  EXPECT_EQ(CheckMemFlags(cl_mem_flags{1} << 40), CL_INVALID_VALUE);
  int memory = 0;
  EXPECT_EQ(CheckHostPtr(CL_MEM_COPY_HOST_PTR, nullptr), CL_INVALID_HOST_PTR);
  EXPECT_EQ(CheckHostPtr(0, &memory), CL_INVALID_HOST_PTR);
  EXPECT_EQ(CheckHostPtr(CL_MEM_USE_HOST_PTR, &memory), CL_SUCCESS);
}

TEST(MemFlagsTest, Inheritance) {
  cl_mem_flags flags = 0;
  EXPECT_EQ(InheritFlags(CL_MEM_READ_ONLY | CL_MEM_USE_HOST_PTR, 0, &flags), CL_SUCCESS);
  EXPECT_EQ(flags, cl_mem_flags{CL_MEM_READ_ONLY | CL_MEM_USE_HOST_PTR});
  EXPECT_EQ(InheritFlags(CL_MEM_READ_ONLY, CL_MEM_READ_WRITE, &flags), CL_INVALID_VALUE);
  EXPECT_EQ(InheritFlags(CL_MEM_READ_WRITE, CL_MEM_COPY_HOST_PTR, &flags), CL_INVALID_VALUE);
  EXPECT_EQ(InheritFlags(CL_MEM_READ_WRITE | CL_MEM_HOST_NO_ACCESS, CL_MEM_HOST_READ_ONLY, &flags), CL_INVALID_VALUE);
  EXPECT_EQ(InheritFlags(CL_MEM_READ_WRITE | CL_MEM_HOST_READ_ONLY, CL_MEM_WRITE_ONLY, &flags), CL_SUCCESS);
  EXPECT_EQ(flags, cl_mem_flags{CL_MEM_WRITE_ONLY | CL_MEM_HOST_READ_ONLY});
}

}  // namespace
}  // namespace hawser::ocl
