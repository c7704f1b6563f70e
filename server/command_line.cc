// SPDX-License-Identifier: Apache-2.0
#include "server/command_line.h"

#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cstdlib>
#include <filesystem>
#include <system_error>

#include "server/cache_folder.h"

namespace hawser::server {
namespace {

using wire::Code;
using wire::Result;
using wire::Status;

constexpr const char* kFooter = R"(
Addresses:
  unix:/path/to.sock      guests on this machine; shared memory goes over it too
  tcp:host:port           other machines; beyond 127.0.0.1 tenants need tokens
  vsock::port             virtual machines, identified by their CID
  vsock:/path:port        virtual machines of VMMs with the hybrid form (a socket <path>_<port>)
Without any, hawserd listens on unix:$XDG_RUNTIME_DIR/hawser.sock, or as root on unix:/run/hawser.sock.

Examples:
  hawserd
  hawserd --listen unix:/run/hawser.sock --listen tcp:127.0.0.1:9700
  hawserd --config /etc/hawser/hawserd.toml --log-level debug

Signals: SIGTERM and SIGINT stop it and its workers; SIGHUP reads tenants and limits again.)";

Result<std::string> DefaultListener() {
  if (const char* directory = std::getenv("XDG_RUNTIME_DIR"); directory != nullptr && directory[0] == '/') {
    return "unix:" + std::string(directory) + "/hawser.sock";
  }
  if (::geteuid() == 0) return std::string("unix:/run/hawser.sock");
  return Status(Code::kInvalid,
                "no address to listen on, and XDG_RUNTIME_DIR is not set; use --listen unix:/some/path");
}

/// The worker of the same installation or the same build tree.
std::string DefaultWorker() {
  std::error_code error;
  const std::filesystem::path self = std::filesystem::read_symlink("/proc/self/exe", error);
  const std::filesystem::path beside = self.parent_path() / "hawser-worker";
  const std::filesystem::path installed = self.parent_path() / "../libexec/hawser/hawser-worker";
  if (!std::filesystem::exists(beside, error) && std::filesystem::exists(installed, error)) {
    return installed.lexically_normal().string();
  }
  return beside.string();
}

}  // namespace

std::optional<int> CommandLine::Parse(int argc, const char* const* argv, CommandLine* parsed) {
  CLI::App app(
      "hawserd lends this machine's CUDA and OpenCL devices to programs in other machines, VMs and containers.");
  app.set_version_flag("--version", "hawserd " HAWSER_VERSION);
  app.add_option("--listen", parsed->listen, "Address to listen on; may be given more than once")
      ->type_name("URI")
      ->expected(1)
      ->take_all();
  app.add_option(
         "--admin", parsed->admin,
         "Where operators connect: unix:/path, or none (default: the first unix socket's path with .admin behind it)")
      ->type_name("URI");
  app.add_option("--config", parsed->config_file, "Configuration file (TOML)")->type_name("FILE");
  app.add_option("--log-level", parsed->log_level, "error, warning, info or debug")->type_name("LEVEL");
  app.add_option("--log-file", parsed->log_file, "Append the log to this file instead of stderr")->type_name("FILE");
  app.add_option("--worker", parsed->worker, "The hawser-worker to start")->type_name("PATH");
  app.add_option(
         "--policy", parsed->policy,
         "How tenants share the devices' time: fair (default), fifo, rr, credit, band, split, drr, prio, slo, a "
         "plugin's path, or none")
      ->type_name("NAME");
  app.add_option("--device", parsed->device,
                 "CUDA device: auto (NVIDIA's where it works, else the software device), nvidia or soft")
      ->type_name("NAME");
  app.add_option(
         "--cuda-memory", parsed->cuda_memory,
         "Where CUDA device memory comes from: chunks (that can be moved), driver, heap (shared with guests on this "
         "machine; not on a GPU), or auto (chunks on NVIDIA's, heap on the software device)")
      ->type_name("NAME");
  app.add_option("--cuda-driver", parsed->cuda_driver, "The CUDA driver library to load, whatever --device says")
      ->type_name("PATH");
  app.footer(kFooter);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    const int status = app.exit(error);
    return status == 0 ? 0 : 2;
  }
  return std::nullopt;
}

Result<Config> CommandLine::Resolve() const {
  Config config;
  if (!config_file.empty()) {
    Result<Config> loaded = Config::Load(config_file);
    if (!loaded.ok()) return loaded.status();
    config = std::move(*loaded);
  }
  if (!listen.empty()) config.listen = listen;
  if (!admin.empty()) config.admin_listen = admin;
  if (!log_level.empty()) {
    const Result<LogLevel> level = ParseLogLevel(log_level);
    if (!level.ok()) return Status(Code::kInvalid, "--log-level: " + level.status().text());
    config.log_level = level.value();
  }
  if (!log_file.empty()) config.log_file = log_file;
  if (!worker.empty()) config.worker = worker;
  if (!policy.empty()) config.scheduler.policy = policy;
  if (!device.empty()) {
    const Result<CudaDevice> parsed = ParseCudaDevice(device);
    if (!parsed.ok()) return Status(Code::kInvalid, "--device: " + parsed.status().text());
    config.cuda_device = parsed.value();
  }
  if (!cuda_memory.empty()) {
    const Result<CudaMemory> parsed = ParseCudaMemory(cuda_memory);
    if (!parsed.ok()) return Status(Code::kInvalid, "--cuda-memory: " + parsed.status().text());
    config.cuda_memory = parsed.value();
  }
  if (!cuda_driver.empty()) config.cuda_driver = cuda_driver;
  if (!config.cuda_cache) config.cuda_cache = DefaultCache("images");
  if (!config.driver_cache) config.driver_cache = DefaultCache("drivers");
  if (config.worker.empty()) config.worker = DefaultWorker();
  if (config.listen.empty()) {
    Result<std::string> listener = DefaultListener();
    if (!listener.ok()) return listener.status();
    config.listen.push_back(listener.value());
  }
  return config;
}

}  // namespace hawser::server
