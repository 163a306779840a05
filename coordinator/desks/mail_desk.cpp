#include "coordinator/desks/mail_desk.hpp"

#include "base/fd.hpp"
#include "base/printable.hpp"
#include "base/process/spawn_clean.hpp"

#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <optional>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#include <utility>

namespace muster::coordinator {
namespace {

constexpr auto kMailPoll = std::chrono::milliseconds(20);
constexpr size_t kComplaintMax = 400;  // bytes of what a program printed

Error no_mail(const std::string& why) {
  return {Errc::unavailable, why, {}};
}

std::string reason() {
  return std::strerror(errno);
}

// The first line that the program has printed.
std::string complaint_in(int file) {
  std::array<char, kComplaintMax> bytes{};
  const ssize_t size = pread(file, bytes.data(), bytes.size(), 0);
  std::string text(bytes.data(), static_cast<size_t>(std::max<ssize_t>(0, size)));
  text.resize(std::min(text.find('\n'), text.size()));
  return on_one_line(text);
}

// The status of the child; nullopt: it was killed, as it took too long or we stop.
std::optional<int> status_of(pid_t child, Millis patience_ms, const std::atomic<bool>& stopped) {
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::milliseconds(patience_ms);
  int status = 0;
  while (waitpid(child, &status, WNOHANG) == 0) {
    if (stopped || std::chrono::steady_clock::now() >= deadline) {
      kill(-child, SIGKILL);
      waitpid(child, &status, 0);
      return std::nullopt;
    }
    std::this_thread::sleep_for(kMailPoll);
  }
  return status;
}

bool write_all(int file, const std::string& text) {
  for (size_t done = 0; done < text.size();) {
    const ssize_t n = write(file, text.data() + done, text.size() - done);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    done += static_cast<size_t>(n);
  }
  return lseek(file, 0, SEEK_SET) == 0;
}

}  // namespace

void MailDesk::send(std::vector<std::string> to, std::string message,
                    std::function<void(Status)> done) {
  work_.give([this, to = std::move(to), message = std::move(message), done = std::move(done)] {
    done(deliver(to, message));
  });
}

void MailDesk::stop() {
  stopped_ = true;
  work_.stop();
}

Status MailDesk::deliver(const std::vector<std::string>& to, const std::string& message) const {
  const Fd input(memfd_create("mail", MFD_CLOEXEC)), output(memfd_create("mail", MFD_CLOEXEC));
  if (!input || !output || !write_all(input.get(), message)) return no_mail(reason());
  // A line with a single dot does not end the message; what follows are addresses.
  std::vector<std::string> words = {program_, "-i", "--"};
  words.insert(words.end(), to.begin(), to.end());
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  std::string path = "PATH=/usr/sbin:/usr/bin:/sbin:/bin";
  const std::array<char*, 2> env{path.data(), nullptr};
  int error = 0;
  const pid_t child = spawn_clean(program_.c_str(), argv.data(), env.data(), input.get(),
                                  output.get(), POSIX_SPAWN_SETPGROUP, error);
  if (child == 0) return no_mail(program_ + ": " + std::strerror(error));
  const auto status = status_of(child, patience_ms_, stopped_);
  if (!status)
    return no_mail(program_ + " took longer than " + std::to_string(patience_ms_ / 1000) + " s");
  if (WIFEXITED(*status) && WEXITSTATUS(*status) == 0) return Nothing{};
  const std::string how = WIFEXITED(*status)
                              ? " exited with " + std::to_string(WEXITSTATUS(*status))
                              : " was ended by signal " + std::to_string(WTERMSIG(*status));
  const std::string said = complaint_in(output.get());
  return no_mail(program_ + how + (said.empty() ? "" : ": " + said));
}

}  // namespace muster::coordinator
