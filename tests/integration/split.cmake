# SPDX-License-Identifier: Apache-2.0
# Launches that the server splits into parts: the same results, and the same behaviour among other commands.
add_executable(split_kernels split_kernels.cc)
target_link_libraries(split_kernels PRIVATE hawser_options PkgConfig::OPENCL)
add_dependencies(split_kernels hawserd hawser-worker hawser_opencl_icd)
foreach(transport shm tcp)
  add_test(NAME opencl_split_same_${transport}
    COMMAND ${HAWSER_PYTHON} ${CMAKE_CURRENT_SOURCE_DIR}/split_same.py --build ${PROJECT_BINARY_DIR}
            --transport ${transport} --items 0 64 128 1024 --split ids --split volume --split matmul --split stride --split plain --split group_sum
            --split last_done --split float_add --split sobel --whole all_meet -- $<TARGET_FILE:split_kernels>)
  set_tests_properties(opencl_split_same_${transport} PROPERTIES LABELS integration TIMEOUT ${HAWSER_TIME_LIMIT}
    ENVIRONMENT "${HAWSER_TEST_ENVIRONMENT}")
endforeach()
# A part for each work-group where launches are small, else parts of 64 work-items. In opencl_isolation_test and
# opencl_late_errors_test a launch has one work-item only, which cannot be split: there it is that a worker with lanes
# and user events fails as others do.
foreach(pair opencl_events_test:1 opencl_order_test:1 opencl_buffers_test:64 opencl_images_test:64
             opencl_lifecycle_test:64 opencl_objects_test:64 opencl_svm_test:1 opencl_isolation_test:1
             opencl_late_errors_test:1 opencl_writes_test:1)
  string(REPLACE ":" ";" pair ${pair})
  list(GET pair 0 name)
  list(GET pair 1 items)
  if(NOT TARGET ${name})  # SVM, with a sanitizer: see CMakeLists.txt.
    hawser_left_out(integration "the sanitizers' heaps in guest and worker cover the same addresses" ${name}_split)
    continue()
  endif()
  set(config)
  if(name STREQUAL "opencl_late_errors_test")
    set(config --server-arg=--config --server-arg=${CMAKE_CURRENT_SOURCE_DIR}/limited.toml)
  endif()
  add_test(NAME ${name}_split
    COMMAND ${HAWSER_PYTHON} ${PROJECT_SOURCE_DIR}/tests/support/with_server.py --build ${PROJECT_BINARY_DIR}
            --transport shm --env HAWSER_OPENCL_SPLIT=items=${items} ${config} -- $<TARGET_FILE:${name}>)
  set_tests_properties(${name}_split PROPERTIES LABELS integration TIMEOUT ${HAWSER_TIME_LIMIT}
    ENVIRONMENT "${HAWSER_TEST_ENVIRONMENT}")
endforeach()
# The example: the same lines as without a server.
add_test(NAME opencl_example_vector_split
  COMMAND ${HAWSER_PYTHON} ${CMAKE_CURRENT_SOURCE_DIR}/split_same.py --build ${PROJECT_BINARY_DIR}
          --transport shm --items 0 64 1024 --split add --split reduce -- $<TARGET_FILE:vector>)
set_tests_properties(opencl_example_vector_split PROPERTIES LABELS integration TIMEOUT ${HAWSER_TIME_LIMIT}
  ENVIRONMENT "${HAWSER_TEST_ENVIRONMENT}")
