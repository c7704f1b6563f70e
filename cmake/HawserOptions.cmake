# SPDX-License-Identifier: Apache-2.0
# Compiler options and the few functions with which every part declares itself.

option(HAWSER_WERROR "Warnings are errors" ON)
option(HAWSER_BUILD_TESTS "Build the tests" ON)
option(HAWSER_BUILD_FUZZERS "Build the libFuzzer targets (needs clang)" OFF)
set(HAWSER_SANITIZER "" CACHE STRING "address, thread or empty")
option(HAWSER_COVERAGE "Instrument for coverage" OFF)

find_program(CCACHE_PROGRAM ccache)
if(CCACHE_PROGRAM AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  # What it keeps serves every checkout, wherever that lies; of files that use precompiled headers the same one alone.
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CMAKE_COMMAND} -E env CCACHE_BASEDIR=${PROJECT_SOURCE_DIR} CCACHE_NOHASHDIR=1
    CCACHE_SLOPPINESS=pch_defines,time_macros ${CCACHE_PROGRAM})
  set(CMAKE_C_COMPILER_LAUNCHER ${CMAKE_CXX_COMPILER_LAUNCHER})
endif()

# Python writes sources while the tree is built. The minimal build does without where there is none: it takes what was
# written on the machine that packed it, under HAWSER_GENERATED/python.
find_program(HAWSER_PYTHON python3)

# hawser_python_output(OUT FILE... ARGS argument... DEPENDS file... [COMMENT text]): what a Python script writes.
function(hawser_python_output)
  cmake_parse_arguments(P "" "COMMENT" "OUT;ARGS;DEPENDS" ${ARGN})
  hawser_packed_python_output(${P_OUT})
  if(HAWSER_PYTHON)
    if(NOT P_COMMENT)
      list(GET P_OUT 0 P_COMMENT)
      cmake_path(GET P_COMMENT FILENAME P_COMMENT)
      set(P_COMMENT "Writing ${P_COMMENT}")
    endif()
    add_custom_command(OUTPUT ${P_OUT} COMMAND ${HAWSER_PYTHON} ${P_ARGS} DEPENDS ${P_DEPENDS} VERBATIM
      COMMENT ${P_COMMENT})
    return()
  endif()
  foreach(out ${P_OUT})
    cmake_path(RELATIVE_PATH out BASE_DIRECTORY ${PROJECT_BINARY_DIR} OUTPUT_VARIABLE name)
    set(packed ${HAWSER_GENERATED}/python/${name})
    add_custom_command(OUTPUT ${out} COMMAND ${CMAKE_COMMAND} -E copy ${packed} ${out} DEPENDS ${packed} VERBATIM)
  endforeach()
endfunction()
# hawser_packed_python_output(FILE...): tests/gpu/pack takes these along.
function(hawser_packed_python_output)
  if(NOT HAWSER_PYTHON AND NOT HAWSER_MINIMAL)
    message(FATAL_ERROR "There is no python3. Type ./hawser setup.")
  endif()
  foreach(out ${ARGN})
    cmake_path(RELATIVE_PATH out BASE_DIRECTORY ${PROJECT_BINARY_DIR} OUTPUT_VARIABLE name)
    set_property(GLOBAL APPEND_STRING PROPERTY HAWSER_PYTHON_OUTPUTS "${name}\n")
  endforeach()
endfunction()

add_library(hawser_options INTERFACE)
target_compile_options(hawser_options INTERFACE -Wall -Wextra -Wshadow -Wnon-virtual-dtor
  -Woverloaded-virtual -Wcast-qual -Wno-missing-field-initializers)
if(HAWSER_WERROR)
  target_compile_options(hawser_options INTERFACE -Werror)
endif()
# PROJECT_SOURCE_DIR: sources include each other by their path from the root ("wire/codec.h").
# PROJECT_BINARY_DIR/generated: what protoc-gen-hawser writes ("proto/opencl/messages.h").
target_include_directories(hawser_options INTERFACE ${PROJECT_SOURCE_DIR}
  ${PROJECT_BINARY_DIR}/generated)

if(HAWSER_SANITIZER STREQUAL "address")
  # Programs pass any number where CUDA's headers say an enumeration; without -fstrict-enums the compilers allow for that.
  add_compile_options(-fsanitize=address,undefined -fno-sanitize=enum -fno-omit-frame-pointer -fno-sanitize-recover=undefined)
  add_link_options(-fsanitize=address,undefined)
elseif(HAWSER_SANITIZER STREQUAL "thread")
  add_compile_options(-fsanitize=thread -fno-omit-frame-pointer)
  add_link_options(-fsanitize=thread)
elseif(HAWSER_SANITIZER)
  message(FATAL_ERROR "HAWSER_SANITIZER is '${HAWSER_SANITIZER}'; use address, thread or nothing")
endif()
if(HAWSER_SANITIZER)
  # Half the time to compile of -O2 -g, and reports with files and lines all the same.
  add_compile_options(-O1 -g1)
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    # What g++ thinks about bounds in instrumented code is often wrong; the sanitizers see for themselves, and the ordinary build warns.
    add_compile_options(-Wno-array-bounds -Wno-stringop-overflow -Wno-stringop-overread -Wno-restrict)
  endif()
endif()
# Seconds after which a test has failed: it hangs. Instrumented code takes ten times as long, and is still no hang.
set(HAWSER_UNIT_TIME_LIMIT 120)
set(HAWSER_TIME_LIMIT 600)
if(HAWSER_SANITIZER)
  set(HAWSER_UNIT_TIME_LIMIT 600)
  set(HAWSER_TIME_LIMIT 1800)
endif()
if(HAWSER_COVERAGE)
  add_compile_options(--coverage -O0)
  add_link_options(--coverage)
endif()

# Tests are most of what there is to compile, and take no time to run: their own files are optimised little.
set(HAWSER_TEST_OPTIMIZATION -O1)
if(HAWSER_SANITIZER OR HAWSER_COVERAGE)
  set(HAWSER_TEST_OPTIMIZATION -O0)
elseif(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  # At -O1 g++ does not see which branches of std::string are not taken, and warns of them.
  list(APPEND HAWSER_TEST_OPTIMIZATION -Wno-array-bounds -Wno-stringop-overflow)
endif()

# Headers that take long, read once for many programs. g++ alone: ccache does not serve others' precompiled headers by
# default. That each file includes what it needs itself is seen where they are not used: by clang-tidy, which looks at the
# product, and for tests by clang (HAWSER_PRESET=fuzz) or -DHAWSER_PRECOMPILE=OFF.
set(precompile ON)
if(NOT CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  set(precompile OFF)
endif()
option(HAWSER_PRECOMPILE "Precompile headers that many files include" ${precompile})

# hawser_precompiled(NAME [LIBRARY] HEADERS <header>... LIBS lib... [OPTIONS option...]): a program or library of nothing but
# those headers, for programs or libraries with the same options: hawser_use_precompiled(TARGET NAME).
function(hawser_precompiled name)
  if(NOT HAWSER_PRECOMPILE)
    return()
  endif()
  cmake_parse_arguments(P "LIBRARY" "" "HEADERS;LIBS;OPTIONS" ${ARGN})
  file(CONFIGURE OUTPUT ${CMAKE_CURRENT_BINARY_DIR}/${name}.cc CONTENT "int main() {}\n")
  if(P_LIBRARY)
    add_library(${name} STATIC ${CMAKE_CURRENT_BINARY_DIR}/${name}.cc)
  else()
    add_executable(${name} ${CMAKE_CURRENT_BINARY_DIR}/${name}.cc)
  endif()
  target_link_libraries(${name} PRIVATE hawser_options ${P_LIBS} Threads::Threads)
  target_compile_options(${name} PRIVATE ${P_OPTIONS})
  target_precompile_headers(${name} PRIVATE ${P_HEADERS})
endfunction()
function(hawser_use_precompiled target name)
  if(TARGET ${name})
    target_precompile_headers(${target} REUSE_FROM ${name})
  endif()
endfunction()

# What most of the product includes, once for all libraries. A folder whose libraries are compiled otherwise sets
# HAWSER_LIBRARY_HEADERS to its own precompiled headers, or to nothing.
set(HAWSER_STD_HEADERS <algorithm> <array> <atomic> <bit> <chrono> <condition_variable> <cstring> <deque> <functional> <map>
  <memory> <mutex> <optional> <set> <shared_mutex> <span> <string> <string_view> <thread> <unordered_map> <unordered_set>
  <utility> <variant> <vector>)
hawser_precompiled(hawser_std_headers LIBRARY HEADERS ${HAWSER_STD_HEADERS})
set(HAWSER_LIBRARY_HEADERS hawser_std_headers)

# hawser_own_precompiled(TARGET <header>...): for it alone, with the standard library's; what nearly all of its files include.
function(hawser_own_precompiled target)
  if(HAWSER_PRECOMPILE)
    target_precompile_headers(${target} PRIVATE ${HAWSER_STD_HEADERS} ${ARGN})
  endif()
endfunction()

# hawser_test_program(TARGET): one that includes GoogleTest.
set(HAWSER_GTEST_HEADERS <gmock/gmock.h> <gtest/gtest.h> ${HAWSER_STD_HEADERS} <filesystem> <fstream> <random>)
function(hawser_test_program name)
  target_compile_options(${name} PRIVATE ${HAWSER_TEST_OPTIMIZATION})
  hawser_use_precompiled(${name} hawser_test_headers)
endfunction()

# hawser_library(NAME SOURCES... [HEADERS <header>...]): a static, position-independent library of the project. HEADERS:
# what nearly all of its files include, precompiled for it alone.
function(hawser_library name)
  cmake_parse_arguments(L "" "" "HEADERS" ${ARGN})
  add_library(${name} STATIC ${L_UNPARSED_ARGUMENTS})
  target_link_libraries(${name} PUBLIC hawser_options Threads::Threads)
  if(L_HEADERS)
    hawser_own_precompiled(${name} ${L_HEADERS})
  elseif(HAWSER_LIBRARY_HEADERS)
    hawser_use_precompiled(${name} ${HAWSER_LIBRARY_HEADERS})
  endif()
endfunction()

# hawser_unit_test(NAME SOURCES f.cc... LIBS lib...): one GoogleTest program, one CTest entry, label "unit".
function(hawser_unit_test name)
  if(NOT HAWSER_BUILD_TESTS)
    return()
  endif()
  find_package(GTest REQUIRED)
  cmake_parse_arguments(T "" "" "SOURCES;LIBS" ${ARGN})
  add_executable(${name} ${T_SOURCES})
  target_link_libraries(${name} PRIVATE hawser_options ${T_LIBS} GTest::gmock GTest::gtest_main Threads::Threads)
  hawser_test_program(${name})
  add_test(NAME ${name} COMMAND ${name})
  set_tests_properties(${name} PROPERTIES LABELS unit TIMEOUT ${HAWSER_UNIT_TIME_LIMIT})
  if(HAWSER_SANITIZER STREQUAL "thread")
    # Drivers under test are not instrumented.
    set_tests_properties(${name} PROPERTIES
      ENVIRONMENT "TSAN_OPTIONS=suppressions=${PROJECT_SOURCE_DIR}/tests/support/tsan.supp")
  endif()
endfunction()

# hawser_faults_on_purpose(TEST [LEAKS]): how its processes end is what the test looks at, and a sanitizer would end them
# otherwise. LEAKS: who ends so, or a plugin that is not trusted with its last call, leaves memory behind.
function(hawser_faults_on_purpose test)
  set(asan handle_segv=0)
  if("LEAKS" IN_LIST ARGN)
    string(APPEND asan ":detect_leaks=0")
  endif()
  if(TEST ${test})
    set_tests_properties(${test} PROPERTIES ENVIRONMENT
      "ASAN_OPTIONS=${asan};TSAN_OPTIONS=handle_segv=0:die_after_fork=0:suppressions=${PROJECT_SOURCE_DIR}/tests/support/tsan.supp")
  endif()
endfunction()

# hawser_left_out(LABEL REASON NAME...): tests that this build cannot run. CTest counts them as skipped, and they say why.
function(hawser_left_out label reason)
  if(NOT HAWSER_BUILD_TESTS)
    return()
  endif()
  foreach(name ${ARGN})
    add_test(NAME ${name} COMMAND ${CMAKE_COMMAND} -E echo "skipped: ${reason}")
    set_tests_properties(${name} PROPERTIES LABELS "${label}" SKIP_REGULAR_EXPRESSION "^skipped: ")
  endforeach()
endfunction()

# hawser_fuzzer(NAME SOURCES f.cc LIBS lib... CORPUS dir): a libFuzzer target and a bounded smoke run, label "fuzz".
# Without clang's fuzzer the same source is linked with tests/fuzz/replay_main.cc, which replays the corpus
# and a fixed number of seeded mutations, so every decoder is exercised in every build.
function(hawser_fuzzer name)
  if(NOT HAWSER_BUILD_TESTS)
    return()
  endif()
  cmake_parse_arguments(F "" "CORPUS" "SOURCES;LIBS" ${ARGN})
  file(MAKE_DIRECTORY ${CMAKE_CURRENT_BINARY_DIR}/${name}_found)
  if(HAWSER_BUILD_FUZZERS AND CMAKE_CXX_COMPILER_ID MATCHES Clang)
    add_executable(${name} ${F_SOURCES})
    target_compile_options(${name} PRIVATE -fsanitize=fuzzer)
    target_link_options(${name} PRIVATE -fsanitize=fuzzer)
    target_link_libraries(${name} PRIVATE hawser_options ${F_LIBS})
    add_test(NAME ${name} COMMAND ${name} -runs=200000 -max_total_time=30 -artifact_prefix=${CMAKE_CURRENT_BINARY_DIR}/
      ${CMAKE_CURRENT_BINARY_DIR}/${name}_found ${F_CORPUS})  # New inputs go to the first folder.
  else()
    add_executable(${name} ${F_SOURCES} ${PROJECT_SOURCE_DIR}/tests/fuzz/replay_main.cc)
    target_link_libraries(${name} PRIVATE hawser_options ${F_LIBS})
    add_test(NAME ${name} COMMAND ${name} --mutations 20000 ${F_CORPUS})
  endif()
  set_tests_properties(${name} PROPERTIES LABELS fuzz TIMEOUT ${HAWSER_UNIT_TIME_LIMIT})
endfunction()
