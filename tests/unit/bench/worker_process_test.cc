// SPDX-License-Identifier: Apache-2.0
#include "bench/worker_process.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <csignal>
#include <fstream>
#include <nlohmann/json.hpp>

#include "bench/local_server.h"
#include "bench/temporary_directory.h"

namespace hawser::bench {
namespace {

using ::testing::HasSubstr;
using wire::Code;

constexpr std::chrono::seconds kPatience{20};

class WorkerProcessTest : public ::testing::Test {
 protected:
  /// A shell script that stands in for the measuring program.
  std::string Script(const std::string& body) {
    const std::string path = directory_.path() + "/worker";
    std::ofstream(path) << "#!/bin/sh\n" << body;
    chmod(path.c_str(), 0700);
    return path;
  }
  void SetUp() override { std::signal(SIGPIPE, SIG_IGN); }

  TemporaryDirectory directory_;
};

TEST_F(WorkerProcessTest, AnswersLineByLine) {
  auto worker = WorkerProcess::Start(Script("while read line; do echo '{\"values\": {\"x\": 3}}'; done\n"), {});
  ASSERT_TRUE(worker.ok()) << worker.status().text();
  for (int i = 0; i < 3; ++i) {
    auto answer = (*worker)->Call({{"measure", "x"}}, kPatience);
    ASSERT_TRUE(answer.ok()) << answer.status().text();
    EXPECT_EQ(answer->at("x"), 3);
  }
}

TEST_F(WorkerProcessTest, ARequestAndItsAnswerMayBeApart) {
  auto worker = WorkerProcess::Start(Script("while read line; do echo '{\"values\": {\"x\": 3}}'; done\n"), {});
  ASSERT_TRUE(worker.ok()) << worker.status().text();
  ASSERT_TRUE((*worker)->Send({{"measure", "x"}}).ok());
  auto answer = (*worker)->Receive(kPatience);
  ASSERT_TRUE(answer.ok()) << answer.status().text();
  EXPECT_EQ(answer->at("x"), 3);
}

TEST_F(WorkerProcessTest, AKilledWorkerAnswersNoMore) {
  auto worker = WorkerProcess::Start(Script("read line; exec cat > /dev/null\n"), {});
  ASSERT_TRUE(worker.ok()) << worker.status().text();
  ASSERT_TRUE((*worker)->Send({{"measure", "x"}}).ok());
  (*worker)->Kill();
  EXPECT_FALSE((*worker)->Call({{"measure", "x"}}, std::chrono::milliseconds(200)).ok());
}

TEST_F(WorkerProcessTest, AnErrorAnswerBecomesAStatus) {
  auto worker = WorkerProcess::Start(Script("read line; echo '{\"error\": \"no such device\"}'; read line\n"), {});
  ASSERT_TRUE(worker.ok());
  auto answer = (*worker)->Call({{"measure", "x"}}, kPatience);
  ASSERT_FALSE(answer.ok());
  EXPECT_THAT(answer.status().text(), HasSubstr("no such device"));
}

TEST_F(WorkerProcessTest, ADeadWorkerIsClosedNotASignal) {
  auto worker = WorkerProcess::Start(Script("read line; exit 3\n"), {});
  ASSERT_TRUE(worker.ok());
  EXPECT_EQ((*worker)->Call({{"measure", "x"}}, kPatience).status().code(), Code::kClosed);
  EXPECT_EQ((*worker)->Call({{"measure", "x"}}, kPatience).status().code(), Code::kClosed);
}

TEST_F(WorkerProcessTest, ASilentWorkerTimesOut) {
  auto worker = WorkerProcess::Start(Script("read line; read another\n"), {});
  ASSERT_TRUE(worker.ok());
  EXPECT_EQ((*worker)->Call({{"measure", "x"}}, std::chrono::milliseconds(50)).status().code(), Code::kTimeout);
}

TEST_F(WorkerProcessTest, GarbageIsAProtocolError) {
  auto worker = WorkerProcess::Start(Script("read line; echo hello; read line\n"), {});
  ASSERT_TRUE(worker.ok());
  EXPECT_EQ((*worker)->Call({{"measure", "x"}}, kPatience).status().code(), Code::kProtocol);
}

TEST_F(WorkerProcessTest, AMissingProgramIsAnErrorAtTheStart) {
  auto worker = WorkerProcess::Start(directory_.path() + "/nothing", {});
  ASSERT_FALSE(worker.ok());
  EXPECT_THAT(worker.status().text(), HasSubstr("No such file"));
}

TEST_F(WorkerProcessTest, TheEnvironmentIsChangedAndUnset) {
  setenv("HAWSER_TEST_KEPT", "kept", 1);
  setenv("HAWSER_TEST_GONE", "gone", 1);
  auto worker = WorkerProcess::Start(
      Script("read line; echo '{\"values\": {\"all\": \"'$HAWSER_TEST_KEPT-$HAWSER_TEST_GONE-$HAWSER_TEST_NEW'\"}}'\n"),
      {{"HAWSER_TEST_GONE", ""}, {"HAWSER_TEST_NEW", "new"}});
  ASSERT_TRUE(worker.ok());
  auto answer = (*worker)->Call({{"measure", "x"}}, kPatience);
  ASSERT_TRUE(answer.ok()) << answer.status().text();
  EXPECT_EQ(answer->at("all"), "kept--new");
}

TEST_F(WorkerProcessTest, AStubbornChildIsKilled) {
  auto child = SpawnChild({Script("trap '' TERM; while :; do sleep 0.05; done\n")}, {}, -1, -1, -1);
  ASSERT_TRUE(child.ok());
  StopChild(*child, std::chrono::milliseconds(200));
  EXPECT_EQ(waitpid(*child, nullptr, WNOHANG), -1);
}

TEST(LocalServer, FindsTheUriInALogLine) {
  EXPECT_EQ(ListeningUri("[info] listening on tcp:127.0.0.1:40233"), "tcp:127.0.0.1:40233");
  EXPECT_EQ(ListeningUri("listening on unix:/tmp/a.sock (mode 0600)\n"), "unix:/tmp/a.sock");
  EXPECT_EQ(ListeningUri("nothing of the kind"), "");
}

TEST_F(WorkerProcessTest, AServerThatEndsAtOnceSaysWhy) {
  auto server = LocalServer::Start(Script("echo 'no such option' >&2; exit 1\n"), directory_.path(), kPatience);
  ASSERT_FALSE(server.ok());
  EXPECT_THAT(server.status().text(), HasSubstr("no such option"));
}

TEST_F(WorkerProcessTest, AServerIsReadyWhenBothListenersAre) {
  auto server = LocalServer::Start(
      Script("echo listening on unix:/x.sock; sleep 0.1; echo listening on tcp:127.0.0.1:7 >&2; exec sleep 100\n"),
      directory_.path(), kPatience);
  ASSERT_TRUE(server.ok()) << server.status().text();
  EXPECT_EQ((*server)->Uri(wire::Transport::kTcp), "tcp:127.0.0.1:7");
  EXPECT_EQ((*server)->Uri(wire::Transport::kShm), "shm:" + directory_.path() + "/hawser.sock");
}

}  // namespace
}  // namespace hawser::bench
