# SPDX-License-Identifier: Apache-2.0
# -DHAWSER_MINIMAL=ON: guest, worker, a small server without the control plane, the CUDA tests, examples and benchmark, for
# a machine that has a CUDA toolkit and a C++ compiler, and none of Hawser's other packages (no protoc, gRPC,
# Protobuf, spdlog, CLI11, toml++, libseccomp, OpenCL). tests/gpu/pack makes the folder to bring along:
#   HAWSER_GENERATED    what protoc-gen-hawser has written:  <dir>/proto/{opencl,cuda,session}/...
#                       and, for where there is no Python, what its scripts have written:  <dir>/python/...
#   HAWSER_THIRD_PARTY  <dir>/nlohmann/json.hpp, <dir>/googletest/{include,src}
# The software device is built too; it reads compressed PTX only where LZ4 and zstd are installed. Workers have no system call filter where libseccomp
# is missing: this is for trying things out, not for serving strangers.
set(HAWSER_GENERATED ${PROJECT_SOURCE_DIR}/generated CACHE PATH "What protoc-gen-hawser has written")
set(HAWSER_THIRD_PARTY ${PROJECT_SOURCE_DIR}/third_party CACHE PATH "Header-only libraries and GoogleTest's source")
if(NOT EXISTS ${HAWSER_GENERATED}/proto/cuda/dispatch.cc)
  message(FATAL_ERROR "There is no ${HAWSER_GENERATED}/proto/cuda: tests/gpu/pack makes a folder that has everything.")
endif()

find_package(Threads REQUIRED)
include(HawserCuda)
target_include_directories(hawser_options INTERFACE ${HAWSER_GENERATED})
enable_testing()

# --- wire, proto
add_subdirectory(wire)
set(gen ${HAWSER_GENERATED}/proto)
hawser_library(hawser_proto proto/trace_text.cc
  ${gen}/opencl/notices.cc ${gen}/opencl/trace.cc ${gen}/cuda/notices.cc ${gen}/cuda/trace.cc)
hawser_library(hawser_proto_server proto/checks.cc ${gen}/opencl/dispatch.cc ${gen}/cuda/dispatch.cc)
target_link_libraries(hawser_proto_server PUBLIC hawser_proto)
add_subdirectory(proto/cuda_api)
hawser_library(hawser_fatbin proto/facts/fatbin.cc proto/facts/host_object.cc)
target_link_libraries(hawser_fatbin PUBLIC hawser_wire)

# --- software device; without LZ4 and zstd it and the splitting of kernels refuse compressed images
find_library(HAWSER_LZ4 lz4)
find_library(HAWSER_ZSTD zstd)
find_path(HAWSER_LZ4_INCLUDE lz4.h)
find_path(HAWSER_ZSTD_INCLUDE zstd.h)
foreach(name LZ4 ZSTD)
  add_library(PkgConfig::${name} INTERFACE IMPORTED)
  if(HAWSER_LZ4 AND HAWSER_ZSTD AND HAWSER_LZ4_INCLUDE AND HAWSER_ZSTD_INCLUDE)
    set_target_properties(PkgConfig::${name} PROPERTIES INTERFACE_LINK_LIBRARIES ${HAWSER_${name}}
      INTERFACE_INCLUDE_DIRECTORIES ${HAWSER_${name}_INCLUDE})
  else()
    message(STATUS "Compressed PTX is not read on the software device: there is no LZ4 or no zstd")
    set_target_properties(PkgConfig::${name} PROPERTIES INTERFACE_COMPILE_DEFINITIONS HAWSER_WITHOUT_COMPRESSION)
  endif()
endforeach()
add_subdirectory(softcuda)

# --- guest
add_subdirectory(interposer/core)
add_subdirectory(interposer/cuda)
add_subdirectory(interposer/cudart)

# --- worker and a small server
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
  add_compile_options(-Wno-restrict)  # g++ bug 105651
endif()
# Of the scheduler what launches in parts need.
add_subdirectory(memmgr)
hawser_library(hawser_kernel_history scheduler/core/kernel_history.cc)
target_link_libraries(hawser_kernel_history PUBLIC hawser_wire)
hawser_library(hawser_scheduler scheduler/core/thread_group.cc)
target_include_directories(hawser_scheduler PUBLIC ${PROJECT_SOURCE_DIR}/include)
target_link_libraries(hawser_scheduler PUBLIC hawser_wire)
hawser_library(hawser_server_common server/device_key.cc server/export_packet.cc server/grants/grant_share.cc server/handshake.cc
  server/session_stats.cc server/size.cc server/trace_ring.cc server/worker/confinement.cc server/worker/export_client.cc server/worker_settings.cc)
target_link_libraries(hawser_server_common PUBLIC hawser_scheduler hawser_wire hawser_proto)
hawser_library(hawser_split_settings server/worker/split_settings.cc)
target_link_libraries(hawser_split_settings PUBLIC hawser_wire)
hawser_library(hawser_split_alarm server/worker/split_alarm.cc)
target_link_libraries(hawser_split_alarm PUBLIC hawser_server_common hawser_kernel_history)
set(worker channel_bulk_receiver channel_bulk_sender channel_replies crash_notice driver_messages executor grant_gate grant_gates guest_session heap_place
  hang_up_watch kernel_output sandbox session_log)
list(TRANSFORM worker REPLACE "(.+)" "server/worker/\\1.cc")
hawser_library(hawser_worker_core ${worker})
target_link_libraries(hawser_worker_core PUBLIC hawser_server_common hawser_proto_server)
find_library(HAWSER_SECCOMP seccomp)
find_path(HAWSER_SECCOMP_INCLUDE seccomp.h)
if(HAWSER_SECCOMP AND HAWSER_SECCOMP_INCLUDE)
  target_link_libraries(hawser_worker_core PRIVATE ${HAWSER_SECCOMP})
else()
  message(STATUS "Workers have no system call filter: there is no libseccomp")
  target_compile_definitions(hawser_worker_core PRIVATE HAWSER_WITHOUT_SECCOMP)
endif()
add_subdirectory(server/backends/cuda)
set(server_dir ${PROJECT_BINARY_DIR}/server)
add_executable(hawser-worker server/worker/main.cc server/worker/backend_factory.cc)
target_link_libraries(hawser-worker PRIVATE hawser_worker_core hawser_backend_cuda)
target_compile_definitions(hawser-worker PRIVATE HAWSER_WITH_CUDA)
add_executable(hawserd tests/gpu/minimal_server.cc server/export_table.cc server/hello_reader.cc server/worker_process.cc)
target_link_libraries(hawserd PRIVATE hawser_server_common)
set_target_properties(hawser-worker hawserd PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${server_dir})

# --- tests: the programs of tests/integration
hawser_library(hawser_gtest ${HAWSER_THIRD_PARTY}/googletest/src/gtest-all.cc
  ${HAWSER_THIRD_PARTY}/googletest/src/gtest_main.cc)
target_include_directories(hawser_gtest SYSTEM PUBLIC ${HAWSER_THIRD_PARTY}/googletest/include)
target_include_directories(hawser_gtest PRIVATE ${HAWSER_THIRD_PARTY}/googletest)
target_compile_options(hawser_gtest PRIVATE -w)
add_library(GTest::gtest_main ALIAS hawser_gtest)
file(GLOB programs ${PROJECT_SOURCE_DIR}/tests/integration/cuda_*_test.cc)
foreach(program ${programs})
  get_filename_component(name ${program} NAME_WE)
  add_executable(${name} ${program})
  target_link_libraries(${name} PRIVATE hawser_options hawser_cuda_headers hawser_cuda hawser_gtest Threads::Threads)
  set_target_properties(${name} PROPERTIES SKIP_BUILD_RPATH TRUE
    RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/tests/integration)
endforeach()

add_subdirectory(tests/integration/cudart)

# --- examples: C++ for the driver API, and what nvcc builds
add_subdirectory(examples/cuda)

# --- benchmark
hawser_library(hawser_bench bench/catalogue.cc bench/cuda_suite.cc bench/local_server.cc bench/raw_stream.cc
  bench/raw_transport.cc bench/report.cc bench/results.cc bench/samples.cc bench/targets.cc bench/worker_process.cc)
target_include_directories(hawser_bench SYSTEM PUBLIC ${HAWSER_THIRD_PARTY})
target_link_libraries(hawser_bench PUBLIC hawser_wire)
add_executable(hawser-gpu-bench tests/gpu/bench_main.cc)
target_link_libraries(hawser-gpu-bench PRIVATE hawser_bench)
add_executable(hawser-bench-cuda bench/cuda_worker_main.cc bench/cuda_measures.cc bench/samples.cc)
target_include_directories(hawser-bench-cuda SYSTEM PRIVATE ${HAWSER_THIRD_PARTY})
target_link_libraries(hawser-bench-cuda PRIVATE hawser_options hawser_wire hawser_cuda_headers hawser_cuda)
set_target_properties(hawser-bench-cuda hawser-gpu-bench PROPERTIES SKIP_BUILD_RPATH TRUE
  RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/bench)
