// SPDX-License-Identifier: Apache-2.0
// This program again, as another process that runs one test that is disabled otherwise; the two talk in words.
#ifndef HAWSER_TESTS_INTEGRATION_OTHER_PROCESS_H_
#define HAWSER_TESTS_INTEGRATION_OTHER_PROCESS_H_

#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace hawser {

/// One end of two pipes. Values are sent as they lie in memory.
class Talk {
 public:
  Talk(int in, int out) : in_(in), out_(out) {}

  template <typename T>
  void Send(const T& value) const {
    static_assert(std::is_trivially_copyable_v<T>);
    (void)!::write(out_, &value, sizeof(value));
  }
  /// False when the other end is gone.
  template <typename T>
  bool Receive(T* value) const {
    static_assert(std::is_trivially_copyable_v<T>);
    char* to = reinterpret_cast<char*>(value);
    for (size_t left = sizeof(T); left != 0;) {
      const ssize_t got = ::read(in_, to, left);
      if (got <= 0) return false;
      to += got;
      left -= static_cast<size_t>(got);
    }
    return true;
  }
  void SayWord() const { Send('x'); }
  bool AwaitWord() const {
    char word = 0;
    return Receive(&word);
  }

 protected:
  int in_;
  int out_;
};

/// From within the other process: whoever started it.
inline Talk Starter() { return {8, 9}; }

class OtherProcess : public Talk {
 public:
  /// `environment`: KEY=VALUE, on top of this process's.
  explicit OtherProcess(const std::string& test,
                        const std::vector<std::pair<std::string, std::string>>& environment = {})
      : Talk(-1, -1) {
    int there[2], back[2];
    if (::pipe2(there, O_CLOEXEC) != 0 || ::pipe2(back, O_CLOEXEC) != 0) return;
    const std::string filter = "--gtest_filter=" + test;
    pid_ = ::fork();
    if (pid_ == 0) {
      // Out of the way of the two numbers that the program knows.
      const int in = ::fcntl(there[0], F_DUPFD, 20), out = ::fcntl(back[1], F_DUPFD, 20);
      ::dup2(in, 8);
      ::dup2(out, 9);
      ::close(in);
      ::close(out);
      for (const auto& [name, value] : environment) ::setenv(name.c_str(), value.c_str(), 1);
      ::execl("/proc/self/exe", "other_process", filter.c_str(), "--gtest_also_run_disabled_tests",
              static_cast<char*>(nullptr));
      ::_exit(127);
    }
    ::close(there[0]);
    ::close(back[1]);
    in_ = back[0];
    out_ = there[1];
  }
  ~OtherProcess() {
    Kill();
    ::close(in_);
    CloseOutput();
  }
  OtherProcess(const OtherProcess&) = delete;
  OtherProcess& operator=(const OtherProcess&) = delete;

  /// It finds that nothing more comes.
  void CloseOutput() {
    ::close(out_);
    out_ = -1;
  }
  /// At once and without a word; returns when it is gone.
  void Kill() {
    if (pid_ <= 0) return;
    ::kill(pid_, SIGKILL);
    (void)Wait();
  }
  /// Its end; true when all was well there.
  bool Wait() {
    int status = -1;
    ::waitpid(pid_, &status, 0);
    pid_ = -1;
    return WIFEXITED(status) && WEXITSTATUS(status) == 0;
  }

 private:
  pid_t pid_ = -1;
};

}  // namespace hawser

#endif  // HAWSER_TESTS_INTEGRATION_OTHER_PROCESS_H_
