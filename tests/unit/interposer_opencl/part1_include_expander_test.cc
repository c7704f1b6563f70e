// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <map>

#include "interposer/opencl/include_expander.h"

namespace hawser::ocl {
namespace {

class IncludeExpanderTest : public testing::Test {
 protected:
  std::optional<std::string> Expand(std::string_view source, std::vector<std::string> directories = {},
                                    std::vector<std::string> kept = {}) {
    IncludeExpander expander(
        std::move(directories),
        [this](const std::string& path) -> std::optional<std::string> {
          const auto it = files_.find(path);
          return it != files_.end() ? std::optional(it->second) : std::nullopt;
        },
        std::move(kept));
    return expander.Expand(source);
  }
  std::map<std::string, std::string> files_;
};

TEST_F(IncludeExpanderTest, ReplacesAndKeepsPositions) {
  files_["/inc/a.h"] = "int a;\n";
  EXPECT_EQ(Expand("first\n#include <a.h>\nthird\n", {"/inc"}),
            "first\n#line 1 \"/inc/a.h\"\nint a;\n#line 3 \"program.cl\"\nthird\n");
}

TEST_F(IncludeExpanderTest, NothingToDo) {
  files_["a.h"] = "int a;\n";
  EXPECT_EQ(Expand("kernel void f() {}\n"), std::nullopt);
  EXPECT_EQ(Expand("#include \"missing.h\"\n"), std::nullopt);
  EXPECT_EQ(Expand("// #include \"a.h\"\n"), std::nullopt);
  EXPECT_EQ(Expand("/* \n#include \"a.h\"\n*/\n"), std::nullopt);
  EXPECT_EQ(Expand("#define include \"a.h\"\n"), std::nullopt);
  EXPECT_EQ(Expand("#include NAME\n"), std::nullopt);
  EXPECT_EQ(Expand("#include <a.h>\n"), std::nullopt);  // Not beside the source.
  EXPECT_EQ(Expand("#include \"a.h\"\n", {}, {"a.h"}), std::nullopt);
}

TEST_F(IncludeExpanderTest, CommentsEndAndStringsAreNoComments) {
  files_["a.h"] = "int a;\n";
  EXPECT_NE(Expand("/* x */ \n#include \"a.h\"\n"), std::nullopt);
  EXPECT_NE(Expand("// /* \n#include \"a.h\"\n"), std::nullopt);
  EXPECT_NE(Expand("constant char* s = \"/*\";\n#include \"a.h\"\n"), std::nullopt);
  EXPECT_NE(Expand("  #  include\t\"a.h\" // why\n"), std::nullopt);
}

TEST_F(IncludeExpanderTest, SearchesBesideTheFileThenInOrder) {
  files_["/one/a.h"] = "#include \"b.h\"\n";
  files_["/one/b.h"] = "int beside;\n";
  files_["/two/b.h"] = "int other;\n";
  files_["/two/a.h"] = "int second;\n";
  EXPECT_NE(Expand("#include <a.h>\n", {"/one", "/two"})->find("int beside;"), std::string::npos);
  EXPECT_NE(Expand("#include <b.h>\n", {"/two", "/one"})->find("int other;"), std::string::npos);
  EXPECT_NE(Expand("#include \"/one/b.h\"\n")->find("int beside;"), std::string::npos);
}

TEST_F(IncludeExpanderTest, PragmaOnceAndCirclesEnd) {
  files_["a.h"] = "#pragma once\nint a;\n#include \"b.h\"\n";
  files_["b.h"] = "#ifndef B\n#define B\n#include \"a.h\"\n#include \"b.h\"\nint b;\n#endif\n";
  const auto expanded = Expand("#include \"a.h\"\n#include \"a.h\"\n#include \"b.h\"\n");
  ASSERT_TRUE(expanded.has_value());
  EXPECT_EQ(expanded->find("pragma"), std::string::npos);
  EXPECT_EQ(expanded->find("int a;"), expanded->rfind("int a;"));
  EXPECT_NE(expanded->find("int b;"), std::string::npos);
}

TEST_F(IncludeExpanderTest, GivesUpOnExplosions) {
  // Each file includes the next one many times over.
  for (int i = 0; i < 8; ++i) {
    std::string text;
    for (int n = 0; n < 64; ++n) text.append("#include \"f").append(std::to_string(i + 1)).append("\"\n");
    files_[std::string("f").append(std::to_string(i))] = text;
  }
  files_["f8"] = std::string(1000, 'x') + "\n";
  EXPECT_EQ(Expand("#include \"f0\"\n"), std::nullopt);
}

TEST_F(IncludeExpanderTest, AFileWithoutFinalNewline) {
  files_["a.h"] = "int a;";
  EXPECT_EQ(Expand("#include \"a.h\""), "#line 1 \"a.h\"\nint a;\n#line 2 \"program.cl\"\n");
}

TEST(IncludeDirectories, UnderstandsOptions) {
  EXPECT_EQ(IncludeDirectories("-I/a -I /b -DX=1 -I\"/c d\" \"-I/e f\" -I /g\\ h -cl-mad-enable"),
            (std::vector<std::string>{"/a", "/b", "/c d", "/e f", "/g h"}));
  EXPECT_EQ(IncludeDirectories("\"-I /a b\""), (std::vector<std::string>{"/a b"}));
  EXPECT_TRUE(IncludeDirectories("").empty());
  EXPECT_TRUE(IncludeDirectories("-I").empty());
  EXPECT_TRUE(IncludeDirectories("-D I").empty());
}

TEST(ReadIncludeFile, RegularFilesOnly) {
  EXPECT_EQ(ReadIncludeFile("/"), std::nullopt);
  EXPECT_EQ(ReadIncludeFile("/dev/zero"), std::nullopt);
  EXPECT_EQ(ReadIncludeFile("/nowhere/at/all"), std::nullopt);
}

}  // namespace
}  // namespace hawser::ocl
