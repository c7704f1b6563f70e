# SPDX-License-Identifier: Apache-2.0
# The CUDA toolkit: its public headers are needed to build, its compiler to build the test and example programs.
# Looked for in HAWSER_CUDA_ROOT, in CUDA_PATH, beside the nvcc on PATH, in /usr/local/cuda and in build/toolkit
# of the source tree (where ./hawser setup puts the packages when the machine has no toolkit).
#
#   hawser_cuda_headers      interface target: cuda.h, cudaTypedefs.h, cuda_runtime_api.h, ...
#   HAWSER_CUDA_INCLUDE_DIR  where they are
#   HAWSER_NVCC              nvcc, or empty
#   HAWSER_NVCC_LEFT_OUT     why programs in CUDA C++ are not built and their tests left out (hawser_left_out()); empty: they are built
#   hawser_nvcc_program()    builds one

set(HAWSER_CUDA_ROOT "" CACHE PATH "CUDA toolkit; found by itself when empty")
find_program(HAWSER_NVCC nvcc HINTS ${HAWSER_CUDA_ROOT}/bin $ENV{CUDA_PATH}/bin
  PATHS /usr/local/cuda/bin ${PROJECT_SOURCE_DIR}/build/toolkit/bin)
if(NOT HAWSER_NVCC)
  set(HAWSER_NVCC "")
endif()
set(HAWSER_NVCC_LEFT_OUT "")
if(NOT HAWSER_NVCC)
  set(HAWSER_NVCC_LEFT_OUT "there is no nvcc here")
elseif(HAWSER_SANITIZER)
  set(HAWSER_NVCC_LEFT_OUT "a program of nvcc's has no sanitizer's runtime, and cannot load a library that needs one")
endif()
set(hawser_nvcc_root "")
if(HAWSER_NVCC)
  file(REAL_PATH ${HAWSER_NVCC} hawser_nvcc_real)
  cmake_path(GET hawser_nvcc_real PARENT_PATH hawser_nvcc_root)
  cmake_path(GET hawser_nvcc_root PARENT_PATH hawser_nvcc_root)
endif()
find_path(HAWSER_CUDA_INCLUDE_DIR cudaTypedefs.h
  HINTS ${HAWSER_CUDA_ROOT}/include $ENV{CUDA_PATH}/include ${hawser_nvcc_root}/include
  PATHS /usr/local/cuda/include ${PROJECT_SOURCE_DIR}/build/toolkit/include)
if(NOT HAWSER_CUDA_INCLUDE_DIR)
  message(FATAL_ERROR "The CUDA toolkit's headers were not found. Type ./hawser setup, or give -DHAWSER_CUDA_ROOT=DIR.")
endif()
file(STRINGS ${HAWSER_CUDA_INCLUDE_DIR}/cuda.h hawser_cuda_version REGEX "^#define CUDA_VERSION [0-9]+")
string(REGEX REPLACE "[^0-9]" "" hawser_cuda_version "${hawser_cuda_version}")
if(NOT hawser_cuda_version GREATER_EQUAL 13000)
  message(FATAL_ERROR "The CUDA toolkit's headers in ${HAWSER_CUDA_INCLUDE_DIR} are of version '${hawser_cuda_version}'; "
    "Hawser is built with those of 13.0 or later (13000). Drivers and programs may be older. Give -DHAWSER_CUDA_ROOT=DIR.")
endif()
add_library(hawser_cuda_headers INTERFACE)
target_include_directories(hawser_cuda_headers SYSTEM INTERFACE ${HAWSER_CUDA_INCLUDE_DIR})

# hawser_nvcc_program(NAME SOURCES f.cu... [STATIC_CUDART] [ARCH compute_75] [CODE sm_75] [FLAGS flag...])
# A CUDA program as a user would build it: with the shared runtime, or with nvcc's default, the static one.
# CODE: what it carries; without it PTX for ARCH, and with -DHAWSER_NVCC_GPU=sm_90 machine code for that as well.
# Makes the file ${CMAKE_CURRENT_BINARY_DIR}/NAME, and the target nvcc_NAME (NAME would be two things to Ninja).
function(hawser_nvcc_program name)
  cmake_parse_arguments(N "STATIC_CUDART" "ARCH;CODE" "SOURCES;FLAGS" ${ARGN})
  if(HAWSER_NVCC_LEFT_OUT)
    message(STATUS "${name}: not built, because ${HAWSER_NVCC_LEFT_OUT}")
    return()
  endif()
  if(NOT N_ARCH)
    set(N_ARCH compute_75)
  endif()
  if(NOT N_CODE)
    set(N_CODE ${N_ARCH})
    if(HAWSER_NVCC_GPU)
      set(N_CODE [${N_ARCH},${HAWSER_NVCC_GPU}])
    endif()
  endif()
  set(cudart shared)
  if(N_STATIC_CUDART)
    set(cudart static)
  endif()
  set(sources)
  foreach(source ${N_SOURCES})
    cmake_path(ABSOLUTE_PATH source BASE_DIRECTORY ${CMAKE_CURRENT_SOURCE_DIR})
    list(APPEND sources ${source})
  endforeach()
  set(out ${CMAKE_CURRENT_BINARY_DIR}/${name})
  add_custom_command(OUTPUT ${out}
    COMMAND ${HAWSER_NVCC} -std=c++17 -O2 -cudart ${cudart} -gencode arch=${N_ARCH},code=${N_CODE} ${N_FLAGS}
      -o ${out} ${sources}
    DEPENDS ${sources} VERBATIM COMMENT "nvcc ${name}")
  add_custom_target(nvcc_${name} ALL DEPENDS ${out})
endfunction()
