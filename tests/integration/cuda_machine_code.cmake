# SPDX-License-Identifier: Apache-2.0
# A server that does not know its driver for the software device does all that it does on NVIDIA's: it gives it machine
# code, takes memory in chunks under addresses that the guest keeps free, and waits on lanes instead of callbacks. The
# driver has NVIDIA's limits, too: streams that are full, host functions one at a time, frees that wait.
if(NOT TARGET hawser_cuda OR NOT TARGET hawser_soft_cuda OR NOT TARGET hawser_backend_cuda)
  return()
endif()
add_library(cubin_driver SHARED ${PROJECT_SOURCE_DIR}/tests/support/cubin_driver.cc
  ${PROJECT_SOURCE_DIR}/tests/support/limited_driver.cc)
set_source_files_properties(${PROJECT_SOURCE_DIR}/tests/support/cubin_driver.cc
  PROPERTIES COMPILE_DEFINITIONS __CUDA_API_VERSION_INTERNAL)
target_link_libraries(cubin_driver PRIVATE hawser_options hawser_cuda_headers hawser_soft_cuda)
target_compile_options(cubin_driver PRIVATE -fvisibility=default)
target_link_options(cubin_driver PRIVATE -Wl,--no-as-needed)

file(GLOB programs CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/cuda_*_test.cc)
foreach(program ${programs})
  get_filename_component(name ${program} NAME_WE)
  # What is refused because the device has no machine code is looked at elsewhere.
  set(arguments)
  if(name STREQUAL "cuda_errors_test")
    set(arguments --gtest_filter=-CudaErrors.CodeForOtherDevicesIsNamedOnStderr)
  endif()
  add_test(NAME ${name}_machine_code
    COMMAND ${HAWSER_PYTHON} ${PROJECT_SOURCE_DIR}/tests/support/with_server.py --build ${PROJECT_BINARY_DIR} --cuda
            --transport tcp --server-arg=--cuda-driver --server-arg=$<TARGET_FILE:cubin_driver>
            -- $<TARGET_FILE:${name}> ${arguments})
  set_tests_properties(${name}_machine_code PROPERTIES LABELS integration TIMEOUT ${HAWSER_TIME_LIMIT}
    ENVIRONMENT "${HAWSER_TEST_ENVIRONMENT}")
endforeach()
