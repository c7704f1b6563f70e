# SPDX-License-Identifier: Apache-2.0
# Programs that use CUDA's driver API: against a hawserd of their own with the software device over each transport, and
# against the software device itself (suffix _local). Built once; which libcuda.so.1 they find is the environment's
# business.
if(NOT TARGET hawser_cuda OR NOT TARGET hawser_soft_cuda OR NOT TARGET hawser_backend_cuda)
  message(STATUS "tests/integration/cuda_*: not built, because guest, backend or software device are missing")
  return()
endif()

# hawser_cuda_integration_test(NAME f.cc [TRANSPORTS none shm unix tcp] [TIMEOUT seconds])
function(hawser_cuda_integration_test name source)
  cmake_parse_arguments(T "" "TIMEOUT" "TRANSPORTS" ${ARGN})
  if(NOT T_TRANSPORTS)
    set(T_TRANSPORTS none shm unix tcp)
  endif()
  if(NOT T_TIMEOUT)
    set(T_TIMEOUT ${HAWSER_TIME_LIMIT})
  endif()
  add_executable(${name} ${source})
  target_link_libraries(${name} PRIVATE hawser_options hawser_cuda_headers hawser_cuda GTest::gtest_main Threads::Threads)
  hawser_test_program(${name})
  set_target_properties(${name} PROPERTIES SKIP_BUILD_RPATH TRUE)
  add_dependencies(${name} hawserd hawser-worker hawser_soft_cuda)
  foreach(transport ${T_TRANSPORTS})
    set(test ${name}_${transport})
    if(transport STREQUAL none)
      set(test ${name}_local)
    endif()
    add_test(NAME ${test}
      COMMAND ${HAWSER_PYTHON} ${PROJECT_SOURCE_DIR}/tests/support/with_server.py --build ${PROJECT_BINARY_DIR} --cuda
              --transport ${transport} -- $<TARGET_FILE:${name}>)
    set_tests_properties(${test} PROPERTIES LABELS integration TIMEOUT ${T_TIMEOUT}
      ENVIRONMENT "${HAWSER_TEST_ENVIRONMENT}")
  endforeach()
endfunction()

file(GLOB programs CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/cuda_*_test.cc)
foreach(program ${programs})
  get_filename_component(name ${program} NAME_WE)
  if(name MATCHES "^cuda_(server|waits)_test$")  # Needs a server: looks at it from outside, or counts what waits for it.
    hawser_cuda_integration_test(${name} ${program} TRANSPORTS shm unix tcp)
  else()
    hawser_cuda_integration_test(${name} ${program})
  endif()
endforeach()

# Handles that a guest of another tenant has got hold of.
foreach(transport shm unix tcp)
  add_test(NAME cuda_sharing_tenants_${transport}
    COMMAND ${HAWSER_PYTHON} ${PROJECT_SOURCE_DIR}/tests/support/with_server.py --build ${PROJECT_BINARY_DIR} --cuda
            --transport ${transport} --server-arg=--config --server-arg=${CMAKE_CURRENT_SOURCE_DIR}/two_tenants.toml
            --env HAWSER_TOKEN=alice-has-this-token-in-tests --env HAWSER_TEST_OTHER_TOKEN=bob-has-this-token-in-tests --
            $<TARGET_FILE:cuda_sharing_test> --gtest_also_run_disabled_tests
            --gtest_filter=CudaSharing.DISABLED_AnotherTenantHasNoUseForATokenThatItStole)
  set_tests_properties(cuda_sharing_tenants_${transport} PROPERTIES LABELS integration TIMEOUT ${HAWSER_TIME_LIMIT}
    ENVIRONMENT "${HAWSER_TEST_ENVIRONMENT}")
endforeach()

# Guests of two tenants, one of whom has a function that does not end before the other has used the device.
foreach(transport shm tcp)
  add_test(NAME cuda_host_functions_tenants_${transport}
    COMMAND ${HAWSER_PYTHON} ${PROJECT_SOURCE_DIR}/tests/support/with_server.py --build ${PROJECT_BINARY_DIR} --cuda
            --transport ${transport} --server-arg=--config --server-arg=${CMAKE_CURRENT_SOURCE_DIR}/two_tenants.toml
            --env HAWSER_TOKEN=alice-has-this-token-in-tests --env HAWSER_TEST_OTHER_TOKEN=bob-has-this-token-in-tests --
            $<TARGET_FILE:cuda_host_functions_test>)
  set_tests_properties(cuda_host_functions_tenants_${transport} PROPERTIES LABELS integration TIMEOUT ${HAWSER_TIME_LIMIT}
    ENVIRONMENT "${HAWSER_TEST_ENVIRONMENT}")
endforeach()

add_test(NAME cuda_sharing_limit
  COMMAND ${HAWSER_PYTHON} ${PROJECT_SOURCE_DIR}/tests/support/with_server.py --build ${PROJECT_BINARY_DIR} --cuda
          --transport unix --server-arg=--config --server-arg=${CMAKE_CURRENT_SOURCE_DIR}/limited.toml --
          $<TARGET_FILE:cuda_sharing_test> --gtest_also_run_disabled_tests
          --gtest_filter=CudaSharing.DISABLED_OpenedMemoryCountsAgainstTheLimit)
set_tests_properties(cuda_sharing_limit PROPERTIES LABELS integration TIMEOUT ${HAWSER_TIME_LIMIT} ENVIRONMENT
  "${HAWSER_TEST_ENVIRONMENT}")

# Images larger than the session's staging memory.
foreach(transport shm unix tcp)
  add_test(NAME cuda_large_image_little_staging_${transport}
    COMMAND ${HAWSER_PYTHON} ${PROJECT_SOURCE_DIR}/tests/support/with_server.py --build ${PROJECT_BINARY_DIR} --cuda
            --transport ${transport} --server-arg=--config
            --server-arg=${CMAKE_CURRENT_SOURCE_DIR}/little_staging.toml -- $<TARGET_FILE:cuda_large_image_test>)
  set_tests_properties(cuda_large_image_little_staging_${transport} PROPERTIES LABELS integration
    TIMEOUT ${HAWSER_TIME_LIMIT} ENVIRONMENT "${HAWSER_TEST_ENVIRONMENT}")
endforeach()

add_test(NAME cuda_cache_test
  COMMAND ${HAWSER_PYTHON} ${CMAKE_CURRENT_SOURCE_DIR}/cuda_cache_test.py ${PROJECT_BINARY_DIR}
          $<TARGET_FILE:cuda_basics_test>)
set_tests_properties(cuda_cache_test PROPERTIES LABELS integration TIMEOUT ${HAWSER_TIME_LIMIT} ENVIRONMENT "${HAWSER_TEST_ENVIRONMENT}")

add_test(NAME cuda_copies_test
  COMMAND ${HAWSER_PYTHON} ${CMAKE_CURRENT_SOURCE_DIR}/cuda_copies_test.py ${PROJECT_BINARY_DIR}
          $<TARGET_FILE:cuda_heap_memory_test>)
set_tests_properties(cuda_copies_test PROPERTIES LABELS integration TIMEOUT ${HAWSER_TIME_LIMIT} ENVIRONMENT "${HAWSER_TEST_ENVIRONMENT}")
