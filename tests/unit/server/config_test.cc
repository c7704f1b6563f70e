// SPDX-License-Identifier: Apache-2.0
#include "server/config.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>
#include <fstream>

namespace hawser::server {
namespace {

std::string ErrorOf(std::string_view text) {
  const wire::Result<Config> config = Config::Parse(text, "test.toml");
  return config.ok() ? "" : config.status().text();
}

Config Parsed(std::string_view text) {
  wire::Result<Config> config = Config::Parse(text, "test.toml");
  EXPECT_TRUE(config.ok()) << config.status().text();
  return config.ok() ? config.value() : Config();
}

TEST(Config, AnEmptyCacheIsNone) {
  const Config config = Parsed("[cuda]\ncache = \"\"\n");
  ASSERT_TRUE(config.cuda_cache);
  EXPECT_EQ(*config.cuda_cache, "");
}

TEST(Config, AnEmptyFileIsAllDefaults) {
  const Config config = Parsed("");
  EXPECT_TRUE(config.listen.empty());
  EXPECT_EQ(config.limits.staging_memory, 1u << 30);
  EXPECT_FALSE(config.allow_unauthenticated_remote);
  EXPECT_TRUE(config.syscall_filter);
  EXPECT_TRUE(config.confine);
  EXPECT_TRUE(config.writable.empty());
  EXPECT_FALSE(config.driver_cache) << "the default place";
  EXPECT_FALSE(config.cuda_cache) << "the default place";
}

TEST(Config, ReadsEverything) {
  const Config config = Parsed(R"(
[server]
listen = ["unix:/run/h.sock", "tcp:127.0.0.1:9700"]
socket_mode = "0660"
worker = "/opt/hawser-worker"
worker_user = "nobody"
syscall_filter = false
confine = false
writable = ["/var/lib/driver", "/opt/kernels"]
driver_cache = "/var/cache/d"
spin_us = 20
log_level = "debug"
log_file = "/var/log/h.log"
[limits]
max_sessions = 10
max_sessions_per_tenant = 3
max_pending = 20
handshake_timeout_ms = 1000
device_memory = "2GiB"
staging_memory = "64 MiB"
max_objects = 1000
inline_limit = "16KiB"
address_space = 0
open_files = 128
[tcp]
require_token = true
allow_unauthenticated_remote = "yes, I trust this network"
[unix]
require_tenant = true
[opencl]
icd_vendors = "/etc/OpenCL/vendors"
share_memory = false
env = { POCL_MAX_PTHREAD_COUNT = "2" }
[cuda]
device = "soft"
memory = "chunks"
driver = "/opt/libcuda.so.1"
cache = "/var/cache/h"
cache_size = "3MiB"
[scheduler]
policy = "/opt/mine.so"
isolated = false
policy_host = "/opt/hawser-policy-host"
alone_after_ms = 50
max_unit_ms = 2000
starvation_ms = 0
[scheduler.settings]
slice_us = 1000
colour = "blue"
[tenants.alice]
uid = [1000, 1001]
device_memory = "1GiB"
[tenants.vm]
cid = [42]
socket = ["/run/vm.sock_9700"]
token = "0123456789abcdef"
max_sessions = 5
)");
  EXPECT_EQ(config.listen.size(), 2u);
  EXPECT_EQ(config.socket_mode, 0660u);
  EXPECT_EQ(config.worker, "/opt/hawser-worker");
  EXPECT_EQ(config.worker_user, "nobody");
  EXPECT_FALSE(config.syscall_filter);
  EXPECT_FALSE(config.confine);
  EXPECT_EQ(config.writable, (std::vector<std::string>{"/var/lib/driver", "/opt/kernels"}));
  EXPECT_EQ(config.driver_cache, "/var/cache/d");
  EXPECT_EQ(config.spin_us, 20u);
  EXPECT_EQ(config.log_level, LogLevel::kDebug);
  EXPECT_EQ(config.max_sessions, 10u);
  EXPECT_EQ(config.max_pending, 20u);
  EXPECT_EQ(config.handshake_timeout_ms, 1000u);
  EXPECT_EQ(config.limits.device_memory, uint64_t{2} << 30);
  EXPECT_EQ(config.limits.staging_memory, 64u << 20);
  EXPECT_EQ(config.limits.inline_limit, 16u << 10);
  EXPECT_TRUE(config.require_token);
  EXPECT_TRUE(config.allow_unauthenticated_remote);
  EXPECT_TRUE(config.require_tenant);
  EXPECT_FALSE(config.share_memory);
  EXPECT_EQ(config.env.at("POCL_MAX_PTHREAD_COUNT"), "2");
  EXPECT_EQ(config.cuda_device, CudaDevice::kSoft);
  EXPECT_EQ(config.cuda_memory, CudaMemory::kChunks);
  EXPECT_EQ(config.cuda_driver, "/opt/libcuda.so.1");
  EXPECT_EQ(config.cuda_cache, "/var/cache/h");
  EXPECT_EQ(config.cuda_cache_size, 3u << 20);
  EXPECT_EQ(config.scheduler.policy, "/opt/mine.so");
  EXPECT_FALSE(config.scheduler.isolated);
  EXPECT_TRUE(Config().scheduler.isolated);
  EXPECT_EQ(config.scheduler.policy_host, "/opt/hawser-policy-host");
  EXPECT_EQ(config.scheduler.alone_after_ms, 50u);
  EXPECT_EQ(config.scheduler.max_unit_ms, 2000u);
  EXPECT_EQ(config.scheduler.starvation_ms, 0u);
  EXPECT_EQ(config.scheduler.settings, (std::map<std::string, std::string>{{"slice_us", "1000"}, {"colour", "blue"}}));
  ASSERT_EQ(config.tenants.size(), 2u);
  EXPECT_EQ(config.tenants[0].name, "alice");
  EXPECT_EQ(config.tenants[0].uids, (std::vector<uid_t>{1000, 1001}));
  EXPECT_EQ(config.tenants[0].limits.device_memory, 1u << 30);
  EXPECT_EQ(config.tenants[0].limits.max_objects, 1000u) << "[limits] is the default of each tenant";
  EXPECT_EQ(config.tenants[1].token, "0123456789abcdef");
  EXPECT_EQ(config.tenants[1].max_sessions, 5u);
}

TEST(Config, NamesFileLineAndKeyOfWhatItDoesNotKnow) {
  const std::string error = ErrorOf("[limits]\n\nmax_sesions = 3\n");
  EXPECT_NE(error.find("test.toml:3: limits.max_sesions is not a key"), std::string::npos) << error;
  EXPECT_NE(error.find("max_sessions"), std::string::npos) << "and says what it knows: " << error;
  EXPECT_NE(ErrorOf("[servers]\n").find("test.toml:1: servers is not a key"), std::string::npos);
  EXPECT_NE(ErrorOf("[tenants.a]\nuid=[1]\ncolour=1\n").find("test.toml:3: tenants.a.colour"), std::string::npos);
  EXPECT_NE(ErrorOf("[opencl]\nenv = { A = 1 }\n").find("opencl.env.A must be a string"), std::string::npos);
}

TEST(Config, RefusesValuesOfTheWrongKind) {
  EXPECT_NE(ErrorOf("[server]\nlisten = \"unix:/x\"\n").find("server.listen must be a list of strings"),
            std::string::npos);
  EXPECT_NE(ErrorOf("[server]\nlisten = [1]\n").find("must be a list of strings"), std::string::npos);
  EXPECT_NE(ErrorOf("[limits]\nmax_sessions = 0\n").find("must be between 1"), std::string::npos);
  EXPECT_NE(ErrorOf("[limits]\nmax_sessions = -1\n").find("must be a number"), std::string::npos);
  EXPECT_NE(ErrorOf("[limits]\nmax_sessions = \"many\"\n").find("must be a number"), std::string::npos);
  EXPECT_NE(ErrorOf("[limits]\ndevice_memory = \"4 GB\"\n").find("must be a size"), std::string::npos);
  EXPECT_NE(ErrorOf("[server]\nsocket_mode = \"0999\"\n").find("octal"), std::string::npos);
  EXPECT_NE(ErrorOf("[server]\nsocket_mode = 660\n").find("octal"), std::string::npos);
  EXPECT_NE(ErrorOf("[server]\nlog_level = \"loud\"\n").find("log level"), std::string::npos);
  EXPECT_NE(ErrorOf("server = 3\n").find("must be a table"), std::string::npos);
  EXPECT_NE(ErrorOf("[tenants]\na = 3\n").find("must be a table"), std::string::npos);
}

TEST(Config, ReportsBrokenTomlWithItsLine) {
  EXPECT_NE(ErrorOf("[server]\nlisten = [\n").find("test.toml:"), std::string::npos);
}

TEST(Config, TrustingANetworkTakesTheExactWords) {
  EXPECT_NE(ErrorOf("[tcp]\nallow_unauthenticated_remote = \"yes\"\n").find("yes, I trust this network"),
            std::string::npos);
  EXPECT_NE(ErrorOf("[tcp]\nallow_unauthenticated_remote = true\n"), "");
}

TEST(Config, ATenantNeedsAnIdentityOfItsOwn) {
  EXPECT_NE(ErrorOf("[tenants.a]\nmax_sessions = 1\n").find("nobody could ever be"), std::string::npos);
  EXPECT_NE(ErrorOf("[tenants.a]\nuid=[5]\n[tenants.b]\nuid=[5]\n").find("belongs to tenant 'a'"), std::string::npos);
  EXPECT_NE(ErrorOf("[tenants.a]\ntoken=\"short\"\n").find("shorter than 16"), std::string::npos);
  EXPECT_EQ(ErrorOf("[tenants.a]\nuid=[5]\n[tenants.b]\ncid=[5]\n"), "");
}

TEST(Config, ReadsATokenFromItsFile) {
  char path[] = "/tmp/hawser-token-XXXXXX";
  const int fd = ::mkstemp(path);
  ASSERT_GE(fd, 0);
  ASSERT_EQ(::write(fd, "a-long-enough-token\n", 20), 20);
  ::close(fd);
  const Config config = Parsed("[tenants.a]\ntoken_file = \"" + std::string(path) + "\"\n");
  ::unlink(path);
  ASSERT_EQ(config.tenants.size(), 1u);
  EXPECT_EQ(config.tenants[0].token, "a-long-enough-token");
  EXPECT_NE(ErrorOf("[tenants.a]\ntoken_file = \"/does/not/exist\"\n").find("tenants.a.token_file"), std::string::npos);
}

TEST(Config, TheShippedExampleIsGood) {
  const wire::Result<Config> config = Config::Load(HAWSER_SOURCE_DIR "/deploy/hawserd.toml");
  ASSERT_TRUE(config.ok()) << config.status().text();
}

TEST(Config, TheShippedExampleIsGoodWithEverythingSwitchedOn) {
  // Each commented key is written "#key = value": without the mark the file must still be good.
  std::ifstream file(HAWSER_SOURCE_DIR "/deploy/hawserd.toml");
  std::string text, line;
  while (std::getline(file, line)) {
    if (line.size() > 1 && line[0] == '#' && line[1] != ' ' && line[1] != '#') line.erase(0, 1);
    if (line.rfind("token_file", 0) == 0) continue;  // Names a file of the reader's.
    text += line + "\n";
  }
  EXPECT_EQ(ErrorOf(text), "");
  EXPECT_FALSE(Parsed(text).tenants.empty());
}

TEST(ParseSize, KnowsBinaryUnits) {
  EXPECT_EQ(ParseSize("0"), 0u);
  EXPECT_EQ(ParseSize("17"), 17u);
  EXPECT_EQ(ParseSize("4KiB"), 4096u);
  EXPECT_EQ(ParseSize("3 MiB"), 3u << 20);
  EXPECT_EQ(ParseSize("1TiB"), uint64_t{1} << 40);
  for (const char* bad : {"", "KiB", "4KB", "-1", "1.5GiB", "99999999999999999999", "20000000000TiB", "4KiB "}) {
    EXPECT_FALSE(ParseSize(bad)) << bad;
  }
}

TEST(Config, ReadsWhereOperatorsConnect) {
  EXPECT_EQ(Parsed("").admin_listen, "");
  const Config config = Parsed(
      "[admin]\nlisten = \"tcp:127.0.0.1:9701\"\n"
      "allow_tcp = \"yes, whoever can connect may control this server\"\n");
  EXPECT_EQ(config.admin_listen, "tcp:127.0.0.1:9701");
  EXPECT_TRUE(config.admin_allow_tcp);
  EXPECT_NE(ErrorOf("[admin]\nallow_tcp = \"yes\"").find("control this server"), std::string::npos);
  EXPECT_NE(ErrorOf("[admin]\nport = 1").find("admin.port"), std::string::npos);
}

TEST(Config, ReadsShares) {
  const Config config = Parsed(
      "[tenants.a]\nuid = [1]\nweight = 30\npriority = -5\nmin_share = 12.5\nmax_share = 50\nslo_ms = 12.5\n"
      "[tenants.b]\nuid = [2]\n");
  const TenantShare expected{30, -5, 125'000, 500'000, 12'500'000};
  EXPECT_EQ(config.tenants[0].share, expected);
  EXPECT_EQ(config.tenants[1].share, TenantShare());
  for (const auto& [line, words] : {std::pair{"weight = 0", "tenants.a.weight"},
                                    {"weight = 10001", "between 1 and 10000"},
                                    {"priority = 1001", "tenants.a.priority"},
                                    {"priority = \"high\"", "tenants.a.priority"},
                                    {"min_share = 101", "percentage"},
                                    {"max_share = -1", "percentage"},
                                    {"slo_ms = -1", "milliseconds"},
                                    {"slo_ms = 3600001", "milliseconds"},
                                    {"max_share = nan", "percentage"},
                                    {"min_share = 60\nmax_share = 50", "more than the limit"}}) {
    const std::string wrong = ErrorOf(std::string("[tenants.a]\nuid = [1]\n") + line + "\n");
    EXPECT_NE(wrong.find(words), std::string::npos) << line << ": " << wrong;
  }
}

}  // namespace
}  // namespace hawser::server
