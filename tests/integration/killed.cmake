# SPDX-License-Identifier: Apache-2.0
# kill -9 at any point: workers, servers and guests, at random moments (killed_test.py).
function(hawser_killed_test api program)
  add_test(NAME killed_${api}
    COMMAND ${HAWSER_PYTHON} ${CMAKE_CURRENT_SOURCE_DIR}/killed_test.py ${PROJECT_BINARY_DIR} ${api} $<TARGET_FILE:${program}>)
  set_tests_properties(killed_${api} PROPERTIES LABELS integration TIMEOUT ${HAWSER_TIME_LIMIT}
    ENVIRONMENT "${HAWSER_TEST_ENVIRONMENT}")
endfunction()

add_executable(killed_opencl killed_opencl.cc)
target_link_libraries(killed_opencl PRIVATE hawser_options PkgConfig::OPENCL Threads::Threads)
target_compile_definitions(killed_opencl PRIVATE CL_TARGET_OPENCL_VERSION=300)
add_dependencies(killed_opencl hawserd hawser-worker hawser_opencl_icd)
hawser_killed_test(opencl killed_opencl)

if(TARGET hawser_cuda AND TARGET hawser_soft_cuda AND TARGET hawser_backend_cuda)
  add_executable(killed_cuda killed_cuda.cc)
  target_link_libraries(killed_cuda PRIVATE hawser_options hawser_cuda_headers hawser_cuda GTest::gtest Threads::Threads)
  set_target_properties(killed_cuda PROPERTIES SKIP_BUILD_RPATH TRUE)
  add_dependencies(killed_cuda hawserd hawser-worker hawser_soft_cuda)
  hawser_killed_test(cuda killed_cuda)
endif()
