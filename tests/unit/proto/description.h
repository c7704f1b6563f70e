// SPDX-License-Identifier: Apache-2.0
// Descriptions written in a test, read as protoc reads a file.
#ifndef HAWSER_TESTS_UNIT_PROTO_DESCRIPTION_H_
#define HAWSER_TESTS_UNIT_PROTO_DESCRIPTION_H_

#include <google/protobuf/compiler/importer.h>
#include <google/protobuf/descriptor.pb.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>
#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <map>
#include <string>

namespace hawser::plugin {

/// Files in memory; hawser/options.proto and what it imports are the real ones.
class Description {
 public:
  /// `body` follows syntax, package hawser.test and the import of the options.
  explicit Description(const std::string& body) : importer_(&tree_, &errors_) {
    tree_.files["test.proto"] = "syntax = \"proto3\"; package hawser.test; import \"hawser/options.proto\";\n" + body;
    std::ifstream options(HAWSER_PROTO_DIR "/hawser/options.proto");
    tree_.files["hawser/options.proto"].assign(std::istreambuf_iterator<char>(options), {});
    tree_.files["google/protobuf/descriptor.proto"] =
        google::protobuf::FileDescriptorProto::descriptor()->file()->DebugString();
    file_ = importer_.Import("test.proto");
    EXPECT_NE(file_, nullptr) << errors_.text;
  }

  const google::protobuf::FileDescriptor* file() const { return file_; }

 private:
  struct Tree : google::protobuf::compiler::SourceTree {
    google::protobuf::io::ZeroCopyInputStream* Open(const std::string& filename) override {
      const auto found = files.find(filename);
      if (found == files.end()) return nullptr;
      return new google::protobuf::io::ArrayInputStream(found->second.data(), static_cast<int>(found->second.size()));
    }
    std::map<std::string, std::string> files;
  };
  struct Errors : google::protobuf::compiler::MultiFileErrorCollector {
    void AddError(const std::string& filename, int line, int, const std::string& message) override {
      text += filename + ":" + std::to_string(line) + ": " + message + "\n";
    }
    std::string text;
  };

  Tree tree_;
  Errors errors_;
  google::protobuf::compiler::Importer importer_;
  const google::protobuf::FileDescriptor* file_ = nullptr;
};

}  // namespace hawser::plugin

#endif  // HAWSER_TESTS_UNIT_PROTO_DESCRIPTION_H_
