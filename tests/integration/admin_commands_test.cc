// SPDX-License-Identifier: Apache-2.0
// hawser top, tenants, sessions, trace and policy against the real hawserd; workers without OpenCL.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "tests/integration/server_daemon.h"

namespace hawser::server {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using Json = nlohmann::json;

class AdminCommandsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    Daemon::Options options;
    options.config = "[tenants.lab]\ntoken = \"a token of the laboratory\"\n";
    daemon_ = Daemon::Start(options);
    ASSERT_TRUE(daemon_);
    server_ = "unix:" + daemon_->socket_path();
  }
  Ran Hawser(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), HAWSER);
    arguments.insert(arguments.end(), {"--server", server_});
    return RunProgram(arguments);
  }
  std::unique_ptr<TestGuest> Guest() {
    HelloOptions hello;
    hello.transport = wire::Transport::kShm;
    return Join(*daemon_, hello);
  }
  std::string OwnTenant() const { return "uid-" + std::to_string(::getuid()); }

  std::unique_ptr<Daemon> daemon_;
  std::string server_;
};

TEST_F(AdminCommandsTest, TenantsAreShownAndChanged) {
  Ran ran = Hawser({"tenants"});
  EXPECT_EQ(ran.status, 0);
  EXPECT_THAT(ran.output, HasSubstr("configuration"));
  ran = Hawser({"tenants", "set", "lab", "--weight", "250", "--memory", "1GiB", "--max-share", "12.5%"});
  EXPECT_EQ(ran.status, 0) << ran.output;
  EXPECT_THAT(ran.output, HasSubstr("12.5%"));
  ran = Hawser({"tenants", "--json", "-"});
  ASSERT_EQ(ran.status, 0) << ran.output;
  Json lab = Json::parse(ran.output)["tenants"][0];
  EXPECT_EQ(lab["settings"]["weight"], 250);
  EXPECT_EQ(lab["settings"]["session_device_memory_bytes"], 1 << 30);
  EXPECT_EQ(lab["settings"]["max_share_ppm"], 125'000);
  EXPECT_TRUE(lab["gpu_ns"].is_null());
  const std::string file = std::filesystem::path(daemon_->socket_path()).parent_path() / "out.json";
  ran = Hawser({"tenants", "reset", "lab", "--json", file});
  EXPECT_EQ(ran.status, 0) << ran.output;
  EXPECT_EQ(ran.output, "");
  lab = Json::parse(std::ifstream(file))["tenants"][0];
  EXPECT_EQ(lab["settings"]["weight"], 100);
  EXPECT_EQ(lab["changed"], false);
}

TEST_F(AdminCommandsTest, ThePolicyIsShownAndChanged) {
  Ran ran = Hawser({"policy", "show"});
  EXPECT_EQ(ran.status, 0) << ran.output;
  EXPECT_THAT(ran.output, HasSubstr("policy fair\n"));
  EXPECT_THAT(ran.output, HasSubstr("drr"));
  ran = Hawser({"policy", "set", "drr"});
  EXPECT_EQ(ran.status, 0) << ran.output;
  EXPECT_THAT(ran.output, HasSubstr("policy drr\n"));
  EXPECT_TRUE(daemon_->WaitForLog("an operator set the policy drr in place of fair"));
  ran = Hawser({"policy", "show", "--json", "-"});
  ASSERT_EQ(ran.status, 0) << ran.output;
  EXPECT_EQ(Json::parse(ran.output)["name"], "drr");
  ran = Hawser({"policy", "set", "band", "--json", "-"});
  ASSERT_EQ(ran.status, 0) << ran.output;
  const Json now = Json::parse(ran.output);
  EXPECT_EQ(now["name"], "band");
  EXPECT_TRUE(now["last_ejection"].is_null());
  EXPECT_THAT(now["available"], ::testing::Contains("fair"));
  // What does not work leaves the one that serves in charge.
  ran = Hawser({"policy", "set", "nonsense"});
  EXPECT_EQ(ran.status, 1);
  EXPECT_THAT(ran.output, HasSubstr("policy: "));
  EXPECT_THAT(ran.output, HasSubstr("nonsense"));
  EXPECT_EQ(Hawser({"policy", "set", "/no/such/plugin.so"}).status, 1);
  EXPECT_EQ(Hawser({"policy", "set", "none"}).status, 1);
  EXPECT_EQ(Hawser({"policy", "set"}).status, 125);
  EXPECT_THAT(Hawser({"policy", "show"}).output, HasSubstr("policy band\n"));
}

TEST_F(AdminCommandsTest, MistakesAreSaidInWords) {
  const auto expect = [&](const std::vector<std::string>& arguments, const std::string& words) {
    const Ran ran = Hawser(arguments);
    EXPECT_NE(ran.status, 0);
    EXPECT_THAT(ran.output, HasSubstr(words));
  };
  expect({"tenants", "set", "lab"}, "nothing to change");
  expect({"tenants", "set", "lab", "--weight", "0"}, "weight must be between 1 and 10000");
  expect({"tenants", "set", "lab", "--weight", "many"}, "many");
  expect({"tenants", "set", "lab", "--memory", "2GB"}, "--memory: '2GB'");
  expect({"tenants", "set", "nobody", "--weight", "1"}, "there are: lab");
  expect({"tenants", "set"}, "NAME");
  expect({"sessions", "stop", "99"}, "there is no session 99");
  expect({"trace"}, "--out");
  expect({"trace", "--out", "/no/such/folder/t.json", "--seconds", "1"}, "/no/such/folder/t.json");
  expect({"top", "--interval", "0"}, "0");
  server_ = "unix:/tmp/hawser-there-is-no-such-socket";
  expect({"top", "--once"}, "no control plane answers at unix:/tmp/hawser-there-is-no-such-socket.admin");
  server_ = "tcp:gpubox:9700";
  expect({"tenants"}, "--admin unix:/path");
}

TEST_F(AdminCommandsTest, SessionsAreShownAndStopped) {
  EXPECT_THAT(Hawser({"sessions"}).output, HasSubstr("no sessions"));
  auto guest = Guest();
  ASSERT_TRUE(guest);
  EXPECT_THAT(Hawser({"sessions", "list"}).output, HasSubstr("running"));
  EXPECT_THAT(Hawser({"sessions", "--tenant", "lab"}).output, HasSubstr("no sessions"));
  const Ran ran = Hawser({"sessions", "--json", "-"});
  EXPECT_EQ(Json::parse(ran.output)["sessions"][0]["tenant"], OwnTenant());
  EXPECT_EQ(Hawser({"sessions", "stop", "1", "--reason", "lunch"}).status, 0);
  const auto frames = guest->DrainToEnd();
  ASSERT_FALSE(frames.empty());
  EXPECT_THAT(std::string(frames.back().As<opencl::SessionLost>().reason), HasSubstr("ended the session: lunch"));
}

TEST_F(AdminCommandsTest, TopPrintsOnceWithoutATerminal) {
  auto guest = Guest();
  ASSERT_TRUE(guest);
  Ran ran = Hawser({"top", "--once", "--interval", "0.1"});
  EXPECT_EQ(ran.status, 0) << ran.output;
  EXPECT_THAT(ran.output, HasSubstr("policy fair   sessions 1/"));
  EXPECT_THAT(ran.output, HasSubstr(OwnTenant()));
  EXPECT_THAT(ran.output, HasSubstr("running"));
  EXPECT_THAT(ran.output, Not(HasSubstr("\x1b"))) << "no terminal, no control sequences";
  ran = Hawser({"top", "--once", "--json"});
  EXPECT_EQ(ran.status, 0) << ran.output;
  const Json shown = Json::parse(ran.output);
  EXPECT_EQ(shown["sessions"][0]["program"], "test");
  EXPECT_EQ(shown["system"], (Json{{"gap_ns", 0}, {"switches", 0}, {"waited_ns", 0}})) << "nobody shares anything";
  EXPECT_TRUE(shown["status"]["policy"]["last_ejection"].is_null());
}

TEST_F(AdminCommandsTest, ATraceIsATimeline) {
  auto guest = Guest();
  ASSERT_TRUE(guest);
  const std::string file = std::filesystem::path(daemon_->socket_path()).parent_path() / "trace.json";
  const Ran ran = Hawser({"trace", "--out", file, "--seconds", "0.3", "--commands"});
  EXPECT_EQ(ran.status, 0) << ran.output;
  EXPECT_THAT(ran.output, HasSubstr("1 sessions and 0 events"));
  const Json trace = Json::parse(std::ifstream(file));
  bool session = false;
  for (const Json& event : trace["traceEvents"]) session |= event["ph"] == "X" && event["cat"] == "session";
  EXPECT_TRUE(session);
}

TEST_F(AdminCommandsTest, TopEndsProperlyWhenInterruptedOrItsServerEnds) {
  for (const bool interrupt : {true, false}) {
    int ends[2];
    ASSERT_EQ(::pipe2(ends, O_CLOEXEC), 0);
    const wire::Fd read_end(ends[0]);
    wire::Fd write_end(ends[1]);
    const pid_t top = ::fork();
    if (top == 0) {
      ::dup2(write_end.get(), 1);
      ::execl(HAWSER, HAWSER, "top", "--json", "--server", server_.c_str(), nullptr);
      ::_exit(99);
    }
    write_end.Reset();
    // It has begun once its first line is here.
    char byte = 0;
    while (::read(read_end.get(), &byte, 1) == 1 && byte != '\n') {
    }
    ASSERT_EQ(byte, '\n');
    if (interrupt) {
      ::kill(top, SIGINT);
    } else {
      EXPECT_EQ(daemon_->Stop(SIGTERM), 0);
    }
    int status = 0;
    ASSERT_EQ(::waitpid(top, &status, 0), top);
    EXPECT_TRUE(WIFEXITED(status));
    EXPECT_EQ(WEXITSTATUS(status), interrupt ? 0 : 1);
  }
}

TEST(AdminHelpTest, HasExamples) {
  for (const char* command : {"top", "tenants", "sessions", "trace"}) {
    const Ran ran = RunProgram({HAWSER, command, "--help"});
    EXPECT_EQ(ran.status, 0);
    EXPECT_THAT(ran.output, HasSubstr("Examples:")) << command;
    EXPECT_THAT(ran.output, HasSubstr("--admin"));
  }
  for (const char* what : {"show", "set"}) {
    const Ran ran = RunProgram({HAWSER, "policy", what, "--help"});
    EXPECT_EQ(ran.status, 0);
    EXPECT_THAT(ran.output, HasSubstr("Examples:")) << what;
    EXPECT_THAT(RunProgram({HAWSER, "policy", "--help"}).output, HasSubstr(what));
  }
}

}  // namespace
}  // namespace hawser::server
