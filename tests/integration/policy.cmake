# SPDX-License-Identifier: Apache-2.0
# Policies and shares in a real server.
add_test(NAME isolated_policy_killed
  COMMAND ${HAWSER_PYTHON} ${CMAKE_CURRENT_SOURCE_DIR}/isolated_policy_test.py ${PROJECT_BINARY_DIR}
          $<TARGET_FILE:hawser_policy_drr>)
set_tests_properties(isolated_policy_killed PROPERTIES LABELS integration TIMEOUT ${HAWSER_TIME_LIMIT}
  ENVIRONMENT "${HAWSER_TEST_ENVIRONMENT}")
add_test(NAME max_share_alone
  COMMAND ${HAWSER_PYTHON} ${CMAKE_CURRENT_SOURCE_DIR}/max_share_test.py ${PROJECT_BINARY_DIR})
set_tests_properties(max_share_alone PROPERTIES LABELS integration TIMEOUT ${HAWSER_TIME_LIMIT}
  ENVIRONMENT "${HAWSER_TEST_ENVIRONMENT}")

# The page of the simulated experiments is what the simulator says: virtual time, the same everywhere.
add_test(NAME simulated_experiments_are_current
  COMMAND ${HAWSER_PYTHON} ${PROJECT_SOURCE_DIR}/docs/experiments/simulated.py --check --hawser $<TARGET_FILE:hawser>)
set_tests_properties(simulated_experiments_are_current PROPERTIES LABELS integration TIMEOUT ${HAWSER_TIME_LIMIT}
  ENVIRONMENT "${HAWSER_TEST_ENVIRONMENT}")

# Kernels that never end.
add_executable(runaway_opencl runaway_opencl.cc)
target_link_libraries(runaway_opencl PRIVATE hawser_options PkgConfig::OPENCL)
target_compile_definitions(runaway_opencl PRIVATE CL_TARGET_OPENCL_VERSION=300)
add_test(NAME runaway_opencl
  COMMAND ${HAWSER_PYTHON} ${CMAKE_CURRENT_SOURCE_DIR}/runaway_test.py ${PROJECT_BINARY_DIR} opencl
          $<TARGET_FILE:runaway_opencl>)
set_tests_properties(runaway_opencl PROPERTIES LABELS integration TIMEOUT ${HAWSER_TIME_LIMIT}
  ENVIRONMENT "${HAWSER_TEST_ENVIRONMENT}")
# The same on one of two devices.
add_test(NAME devices_opencl
  COMMAND ${HAWSER_PYTHON} ${CMAKE_CURRENT_SOURCE_DIR}/devices_test.py ${PROJECT_BINARY_DIR} opencl
          $<TARGET_FILE:runaway_opencl>)
set_tests_properties(devices_opencl PROPERTIES LABELS integration TIMEOUT ${HAWSER_TIME_LIMIT}
  ENVIRONMENT "${HAWSER_TEST_ENVIRONMENT}")
if(TARGET hawser_cuda AND TARGET hawser_soft_cuda AND TARGET hawser_backend_cuda)
  add_executable(runaway_cuda runaway_cuda.cc)
  target_link_libraries(runaway_cuda PRIVATE hawser_options hawser_cuda_headers hawser_cuda)
  set_target_properties(runaway_cuda PROPERTIES SKIP_BUILD_RPATH TRUE)
  add_test(NAME runaway_cuda
    COMMAND ${HAWSER_PYTHON} ${CMAKE_CURRENT_SOURCE_DIR}/runaway_test.py ${PROJECT_BINARY_DIR} cuda
            $<TARGET_FILE:runaway_cuda>)
  add_test(NAME devices_cuda
    COMMAND ${HAWSER_PYTHON} ${CMAKE_CURRENT_SOURCE_DIR}/devices_test.py ${PROJECT_BINARY_DIR} cuda
            $<TARGET_FILE:runaway_cuda>)
  set_tests_properties(runaway_cuda devices_cuda PROPERTIES LABELS integration TIMEOUT ${HAWSER_TIME_LIMIT}
    ENVIRONMENT "${HAWSER_TEST_ENVIRONMENT}")
endif()
