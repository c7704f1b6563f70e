# SPDX-License-Identifier: Apache-2.0
# Raw clients against the real hawserd; workers without OpenCL.
add_executable(server_daemon_test server_daemon_test.cc server_daemon.cc)
target_link_libraries(server_daemon_test PRIVATE hawser_fake_backend GTest::gmock GTest::gtest_main)
hawser_test_program(server_daemon_test)
target_compile_definitions(server_daemon_test PRIVATE
  HAWSERD="$<TARGET_FILE:hawserd>" FAKE_WORKER="$<TARGET_FILE:hawser-fake-worker>")
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
  target_compile_options(server_daemon_test PRIVATE -Wno-restrict)  # g++ bug 105651
endif()
add_dependencies(server_daemon_test hawserd hawser-fake-worker)
add_test(NAME server_daemon_test COMMAND server_daemon_test)
set_tests_properties(server_daemon_test PROPERTIES LABELS integration TIMEOUT ${HAWSER_TIME_LIMIT}
  ENVIRONMENT "${HAWSER_TEST_ENVIRONMENT}")

# The control plane, through its generated stubs.
add_executable(admin_test admin_test.cc server_daemon.cc)
target_link_libraries(admin_test PRIVATE hawser_fake_backend hawser_admin_proto GTest::gmock GTest::gtest_main)
hawser_test_program(admin_test)
target_compile_definitions(admin_test PRIVATE
  HAWSERD="$<TARGET_FILE:hawserd>" FAKE_WORKER="$<TARGET_FILE:hawser-fake-worker>")
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
  target_compile_options(admin_test PRIVATE -Wno-restrict)  # g++ bug 105651
endif()
add_dependencies(admin_test hawserd hawser-fake-worker)
add_test(NAME admin_test COMMAND admin_test)
set_tests_properties(admin_test PROPERTIES LABELS integration TIMEOUT ${HAWSER_TIME_LIMIT} ENVIRONMENT "${HAWSER_TEST_ENVIRONMENT}")

# The commands for operators.
find_package(nlohmann_json REQUIRED)
add_executable(admin_commands_test admin_commands_test.cc server_daemon.cc)
target_link_libraries(admin_commands_test PRIVATE hawser_fake_backend nlohmann_json::nlohmann_json
  GTest::gmock GTest::gtest_main)
hawser_test_program(admin_commands_test)
target_compile_definitions(admin_commands_test PRIVATE HAWSER="$<TARGET_FILE:hawser>"
  HAWSERD="$<TARGET_FILE:hawserd>" FAKE_WORKER="$<TARGET_FILE:hawser-fake-worker>")
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
  target_compile_options(admin_commands_test PRIVATE -Wno-restrict)  # g++ bug 105651
endif()
add_dependencies(admin_commands_test hawserd hawser-fake-worker hawser)
add_test(NAME admin_commands_test COMMAND admin_commands_test)
set_tests_properties(admin_commands_test PROPERTIES LABELS integration TIMEOUT ${HAWSER_TIME_LIMIT}
  ENVIRONMENT "${HAWSER_TEST_ENVIRONMENT}")

set(doctor_cuda)
if(TARGET hawser_cuda AND TARGET hawser_soft_cuda AND TARGET hawser_backend_cuda)
  set(doctor_cuda cuda)
endif()
add_test(NAME doctor_test
  COMMAND ${HAWSER_PYTHON} ${CMAKE_CURRENT_SOURCE_DIR}/doctor_test.py ${PROJECT_BINARY_DIR} ${doctor_cuda})
set_tests_properties(doctor_test PROPERTIES LABELS integration TIMEOUT ${HAWSER_TIME_LIMIT}
  ENVIRONMENT "${HAWSER_TEST_ENVIRONMENT}")

# Guests and workers must do without gRPC and Protobuf: a worker's address space is a guest's to attack.
foreach(target hawser-worker hawser_opencl_icd)
  add_test(NAME ${target}_links_no_grpc
    COMMAND sh -c "! ldd '$<TARGET_FILE:${target}>' | grep -E 'grpc|protobuf|absl'")
  set_tests_properties(${target}_links_no_grpc PROPERTIES LABELS check)
endforeach()
