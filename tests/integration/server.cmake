# SPDX-License-Identifier: Apache-2.0
# Raw clients against the real hawserd; workers without OpenCL.
add_executable(server_daemon_test server_daemon_test.cc server_daemon.cc)
target_link_libraries(server_daemon_test PRIVATE hawser_fake_backend GTest::gmock GTest::gtest_main)
target_compile_definitions(server_daemon_test PRIVATE
  HAWSERD="$<TARGET_FILE:hawserd>" FAKE_WORKER="$<TARGET_FILE:hawser-fake-worker>")
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
  target_compile_options(server_daemon_test PRIVATE -Wno-restrict)  # g++ bug 105651
endif()
add_dependencies(server_daemon_test hawserd hawser-fake-worker)
add_test(NAME server_daemon_test COMMAND server_daemon_test)
set_tests_properties(server_daemon_test PROPERTIES LABELS integration TIMEOUT 300
  ENVIRONMENT "${HAWSER_TEST_ENVIRONMENT}")

# The control plane, through its generated stubs.
add_executable(admin_test admin_test.cc server_daemon.cc)
target_link_libraries(admin_test PRIVATE hawser_fake_backend hawser_admin_proto GTest::gmock GTest::gtest_main)
target_compile_definitions(admin_test PRIVATE
  HAWSERD="$<TARGET_FILE:hawserd>" FAKE_WORKER="$<TARGET_FILE:hawser-fake-worker>")
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
  target_compile_options(admin_test PRIVATE -Wno-restrict)  # g++ bug 105651
endif()
add_dependencies(admin_test hawserd hawser-fake-worker)
add_test(NAME admin_test COMMAND admin_test)
set_tests_properties(admin_test PROPERTIES LABELS integration TIMEOUT 300 ENVIRONMENT "${HAWSER_TEST_ENVIRONMENT}")
