# SPDX-License-Identifier: Apache-2.0
# Device memory in chunks, as it comes on NVIDIA's driver, here on the software device: the same results.
if(NOT TARGET hawser_cuda OR NOT TARGET hawser_soft_cuda OR NOT TARGET hawser_backend_cuda)
  return()
endif()

set(in_chunks --server-arg=--cuda-memory --server-arg=chunks)
file(GLOB programs CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/cuda_*_test.cc)
foreach(program ${programs})
  get_filename_component(name ${program} NAME_WE)
  add_test(NAME ${name}_chunks
    COMMAND ${HAWSER_PYTHON} ${PROJECT_SOURCE_DIR}/tests/support/with_server.py --build ${PROJECT_BINARY_DIR} --cuda
            --transport shm ${in_chunks} -- $<TARGET_FILE:${name}>)
  set_tests_properties(${name}_chunks PROPERTIES LABELS integration TIMEOUT ${HAWSER_TIME_LIMIT}
    ENVIRONMENT "${HAWSER_TEST_ENVIRONMENT}")
endforeach()

# Chunks that go to other processes: with each way to the server, to the wrong tenant, and against the limit.
foreach(transport unix tcp)
  add_test(NAME cuda_sharing_test_chunks_${transport}
    COMMAND ${HAWSER_PYTHON} ${PROJECT_SOURCE_DIR}/tests/support/with_server.py --build ${PROJECT_BINARY_DIR} --cuda
            --transport ${transport} ${in_chunks} -- $<TARGET_FILE:cuda_sharing_test>)
endforeach()
add_test(NAME cuda_sharing_tenants_chunks
  COMMAND ${HAWSER_PYTHON} ${PROJECT_SOURCE_DIR}/tests/support/with_server.py --build ${PROJECT_BINARY_DIR} --cuda
          --transport unix ${in_chunks} --server-arg=--config
          --server-arg=${CMAKE_CURRENT_SOURCE_DIR}/two_tenants.toml
          --env HAWSER_TOKEN=alice-has-this-token-in-tests --env HAWSER_TEST_OTHER_TOKEN=bob-has-this-token-in-tests --
          $<TARGET_FILE:cuda_sharing_test> --gtest_also_run_disabled_tests
          --gtest_filter=CudaSharing.DISABLED_AnotherTenantHasNoUseForATokenThatItStole)
add_test(NAME cuda_sharing_limit_chunks
  COMMAND ${HAWSER_PYTHON} ${PROJECT_SOURCE_DIR}/tests/support/with_server.py --build ${PROJECT_BINARY_DIR} --cuda
          --transport unix ${in_chunks} --server-arg=--config --server-arg=${CMAKE_CURRENT_SOURCE_DIR}/limited.toml --
          $<TARGET_FILE:cuda_sharing_test> --gtest_also_run_disabled_tests
          --gtest_filter=CudaSharing.DISABLED_OpenedMemoryCountsAgainstTheLimit)
set_tests_properties(cuda_sharing_test_chunks_unix cuda_sharing_test_chunks_tcp cuda_sharing_tenants_chunks
  cuda_sharing_limit_chunks PROPERTIES LABELS integration TIMEOUT ${HAWSER_TIME_LIMIT} ENVIRONMENT
  "${HAWSER_TEST_ENVIRONMENT}")

set(names boxes faults graphs streams symbols textures managed)
if(HAWSER_NVCC_LEFT_OUT)
  foreach(name ${names})
    hawser_left_out(integration "${HAWSER_NVCC_LEFT_OUT}" cudart_${name}_chunks)
  endforeach()
  return()
endif()
foreach(name ${names})
  add_test(NAME cudart_${name}_chunks
    COMMAND ${HAWSER_PYTHON} ${PROJECT_SOURCE_DIR}/tests/support/cuda_program.py --build ${PROJECT_BINARY_DIR}
            --way tcp ${in_chunks} -- ${CMAKE_CURRENT_BINARY_DIR}/cudart/cudart_${name})
  set_tests_properties(cudart_${name}_chunks PROPERTIES LABELS integration TIMEOUT ${HAWSER_TIME_LIMIT} SKIP_RETURN_CODE 77)
endforeach()
