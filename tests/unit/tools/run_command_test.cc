// SPDX-License-Identifier: Apache-2.0
// `hawser run` as a process: its environment, exit codes and messages.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "bench/temporary_directory.h"
#include "tools/server_uri.h"
#include "wire/socket.h"

namespace hawser::tools {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

class RunCommandTest : public ::testing::Test {
 protected:
  void SetUp() override {
    // A tree of its own around a copy of the built command, so that the guest library need not exist.
    const std::filesystem::path root = directory_.path();
    for (const char* part : {"tools", "icd", "lib"}) std::filesystem::create_directories(root / part);
    std::filesystem::copy_file(HAWSER_COMMAND, root / "tools/hawser");
    std::ofstream(root / "lib/libhawser_opencl.so") << "";
    std::ofstream(root / "icd/hawser.icd") << (root / "lib/libhawser_opencl.so").string() << "\n";
    unsetenv("HAWSER_SERVER");
  }

  struct Outcome {
    int code = -1;
    std::string text;
  };
  /// Runs `hawser <arguments>` through a shell, stderr included in the text.
  Outcome Hawser(const std::string& arguments) {
    const std::string output = directory_.path() + "/output";
    const std::string command =
        "cd " + directory_.path() + " && tools/hawser " + arguments + " >" + output + " 2>&1 </dev/null";
    const int status = std::system(command.c_str());
    std::ifstream file(output);
    return {WEXITSTATUS(status), std::string(std::istreambuf_iterator<char>(file), {})};
  }
  /// A server that only listens.
  wire::Fd Listener(const std::string& name) {
    const auto endpoint = wire::Endpoint::Parse("unix:" + directory_.path() + "/" + name);
    auto fd = wire::Listen(endpoint.value(), 4);
    EXPECT_TRUE(fd.ok()) << fd.status().text();
    return std::move(*fd);
  }

  bench::TemporaryDirectory directory_;
};

TEST_F(RunCommandTest, SetsTheGuestEnvironmentWithAbsolutePaths) {
  const wire::Fd server = Listener("s.sock");
  const Outcome outcome = Hawser("run --server shm:s.sock -- sh -c 'echo $OCL_ICD_VENDORS $HAWSER_SERVER'");
  EXPECT_EQ(outcome.code, 0);
  EXPECT_EQ(outcome.text, directory_.path() + "/icd shm:" + directory_.path() + "/s.sock\n");
}

TEST_F(RunCommandTest, CudaProgramsFindTheGuestLibraries) {
  const std::string root = directory_.path();
  std::filesystem::create_directories(root + "/guest");
  std::ofstream(root + "/guest/libhawser_preload.so") << "";
  // An empty library cannot be preloaded: the loader says so and goes on.
  const Outcome outcome = Hawser("run --no-check -- sh -c 'echo $LD_LIBRARY_PATH $LD_PRELOAD'");
  EXPECT_EQ(outcome.code, 0);
  EXPECT_THAT(outcome.text, HasSubstr(root + "/guest " + root + "/guest/libhawser_preload.so\n"));
}

TEST_F(RunCommandTest, TheSoftwareDeviceNeedsNoServer) {
  const std::string root = directory_.path();
  for (const char* part : {"guest", "soft"}) std::filesystem::create_directories(root + "/" + part);
  std::ofstream(root + "/guest/libhawser_preload.so") << "";
  std::ofstream(root + "/soft/libcuda.so.1") << "";
  setenv("LD_LIBRARY_PATH", "/before", 1);
  const Outcome outcome = Hawser("run --device soft -- sh -c 'echo $LD_LIBRARY_PATH [$HAWSER_SERVER]'");
  unsetenv("LD_LIBRARY_PATH");
  EXPECT_EQ(outcome.code, 0);
  EXPECT_THAT(outcome.text, HasSubstr(root + "/soft:" + root + "/guest:/before []\n"));
}

TEST_F(RunCommandTest, TheSoftwareDeviceDoesNotGoWithAServer) {
  const Outcome outcome = Hawser("run --device soft --server shm:s.sock echo ran");
  EXPECT_EQ(outcome.code, 125);
  EXPECT_THAT(outcome.text, HasSubstr("hawserd --device soft"));
  EXPECT_EQ(Hawser("run --device carrier-pigeon echo ran").code, 125);
}

TEST_F(RunCommandTest, SaysWhenTheSoftwareDeviceIsMissing) {
  const Outcome outcome = Hawser("run --device=soft echo ran");
  EXPECT_EQ(outcome.code, 125);
  EXPECT_THAT(outcome.text, HasSubstr("soft/libcuda.so.1"));
}

TEST_F(RunCommandTest, PassesTheProgramsOwnOptions) {
  const Outcome outcome = Hawser("run --no-check echo --server x -n --help -- y");
  EXPECT_EQ(outcome.text, "--server x -n --help -- y\n");
}

TEST_F(RunCommandTest, PassesOptionsAfterTwoDashes) {
  EXPECT_EQ(Hawser("run --no-check -- echo -- --json").text, "-- --json\n");
}

TEST_F(RunCommandTest, ReturnsTheProgramsExitCode) { EXPECT_EQ(Hawser("run --no-check sh -c 'exit 42'").code, 42); }

TEST_F(RunCommandTest, RunsScripts) {
  const std::string script = directory_.path() + "/script";
  std::ofstream(script) << "#!/bin/sh\necho script $1\n";
  chmod(script.c_str(), 0700);
  EXPECT_EQ(Hawser("run --no-check ./script one").text, "script one\n");
}

TEST_F(RunCommandTest, SaysWhenNoServerAnswers) {
  const Outcome outcome = Hawser("run --server unix:/nowhere/s.sock echo ran");
  EXPECT_EQ(outcome.code, 125);
  EXPECT_THAT(outcome.text, HasSubstr("no server answers at unix:/nowhere/s.sock"));
  EXPECT_THAT(outcome.text, HasSubstr("--listen unix:/nowhere/s.sock"));
  EXPECT_THAT(outcome.text, Not(HasSubstr("ran\n")));
}

TEST_F(RunCommandTest, SaysWhenTheUriIsWrong) {
  const Outcome outcome = Hawser("run --server carrier-pigeon:7 echo ran");
  EXPECT_EQ(outcome.code, 125);
  EXPECT_THAT(outcome.text, HasSubstr("carrier-pigeon"));
}

TEST_F(RunCommandTest, HasTheExitCodesOfEnv) {
  EXPECT_EQ(Hawser("run --no-check no-such-program-anywhere").code, 127);
  EXPECT_EQ(Hawser("run --no-check ./icd").code, 126);
  EXPECT_EQ(Hawser("run --no-check").code, 125);
  EXPECT_EQ(Hawser("run --no-such-option echo").code, 125);
}

TEST_F(RunCommandTest, SaysWhenTheGuestLibraryIsMissing) {
  std::filesystem::remove(directory_.path() + "/lib/libhawser_opencl.so");
  const Outcome outcome = Hawser("run --no-check echo ran");
  EXPECT_EQ(outcome.code, 125);
  EXPECT_THAT(outcome.text, HasSubstr("does not exist"));
}

TEST_F(RunCommandTest, HelpIsNotTheProgramsHelp) {
  const Outcome outcome = Hawser("run --help");
  EXPECT_EQ(outcome.code, 0);
  EXPECT_THAT(outcome.text, HasSubstr("--no-check"));
}

TEST(ServerUri, TheOptionWinsOverTheEnvironment) {
  setenv("HAWSER_SERVER", "tcp:127.0.0.1:9", 1);
  EXPECT_EQ(ChosenServer("tcp:127.0.0.1:8"), "tcp:127.0.0.1:8");
  EXPECT_EQ(ChosenServer(""), "tcp:127.0.0.1:9");
  unsetenv("HAWSER_SERVER");
  EXPECT_EQ(ChosenServer(""), DefaultServer());
}

TEST(ServerUri, ASharedMemoryGuestNeedsAUnixListener) {
  EXPECT_EQ(ListenerFor("shm:/run/h.sock"), "unix:/run/h.sock");
  EXPECT_EQ(ListenerFor("tcp:127.0.0.1:9700"), "tcp:127.0.0.1:9700");
}

}  // namespace
}  // namespace hawser::tools
