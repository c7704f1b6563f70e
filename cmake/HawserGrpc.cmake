# SPDX-License-Identifier: Apache-2.0
# gRPC, for hawserd and the `hawser` command only: guests, workers and the data plane do not link it.
#   hawser_grpc     interface target: gRPC, its reflection service, Protobuf
#   hawser_grpc_library(NAME file.proto...)   messages and service stubs, from files under proto/
#
# Through pkg-config, because the CMake packages of Debian 12 and Ubuntu 24.04 need targets that FindProtobuf does not make.
# The reflection library has no .pc file on either.
pkg_check_modules(GRPCXX REQUIRED IMPORTED_TARGET grpc++)
find_library(HAWSER_GRPC_REFLECTION grpc++_reflection REQUIRED)
find_program(HAWSER_GRPC_PLUGIN grpc_cpp_plugin REQUIRED)

add_library(hawser_grpc INTERFACE)
target_include_directories(hawser_grpc SYSTEM INTERFACE ${Protobuf_INCLUDE_DIRS})
target_link_libraries(hawser_grpc INTERFACE ${HAWSER_GRPC_REFLECTION} PkgConfig::GRPCXX protobuf::libprotobuf)
# The .pc file names dozens of libraries that only gRPC itself uses.
target_link_options(hawser_grpc INTERFACE LINKER:--as-needed)

function(hawser_grpc_library name)
  set(folder ${PROJECT_BINARY_DIR}/grpc)
  file(MAKE_DIRECTORY ${folder})
  set(sources "")
  foreach(file ${ARGN})
    string(REGEX REPLACE "\\.proto$" "" stem ${file})
    set(products ${folder}/${stem}.pb.cc ${folder}/${stem}.pb.h ${folder}/${stem}.grpc.pb.cc ${folder}/${stem}.grpc.pb.h)
    add_custom_command(
      OUTPUT ${products}
      COMMAND protobuf::protoc -I ${PROJECT_SOURCE_DIR}/proto --cpp_out=${folder} --grpc_out=${folder}
              --plugin=protoc-gen-grpc=${HAWSER_GRPC_PLUGIN} ${file}
      DEPENDS ${PROJECT_SOURCE_DIR}/proto/${file}
      COMMENT "Generating ${file}"
      VERBATIM)
    list(APPEND sources ${folder}/${stem}.pb.cc ${folder}/${stem}.grpc.pb.cc)
  endforeach()
  # Not hawser_library: generated code is not held to the project's warnings.
  add_library(${name} STATIC ${sources})
  target_include_directories(${name} SYSTEM PUBLIC ${folder})
  target_link_libraries(${name} PUBLIC hawser_grpc Threads::Threads)
  target_compile_options(${name} PRIVATE -w)
endfunction()
