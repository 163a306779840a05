// Pam, in the keeper and in the child between fork and exec.
#include "base/clock.hpp"
#include "base/exec_exit.hpp"
#include "keeper/users/pam.hpp"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <fcntl.h>
#include <poll.h>
#include <string_view>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

namespace muster::keeper {
namespace {

constexpr unsigned kSecondsMax = 3600;
// The helper's environment: nothing from the keeper or the pod.
char kHelperPath[] = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
char* kHelperEnvironment[] = {kHelperPath, nullptr};

bool same_name(const char* variable, const char* other) {
  const char* const equals = std::strchr(variable, '=');
  return equals != nullptr &&
         std::strncmp(variable, other, static_cast<size_t>(equals - variable) + 1) == 0;
}

}  // namespace

Result<PamSettings> pam_settings() {
  PamSettings settings;
  const char* service = std::getenv(kPamVariable);
  const char* seconds = std::getenv(kPamSecondsVariable);
  if (service == nullptr && seconds != nullptr)
    return invalid(std::string(kPamSecondsVariable) + " needs " + kPamVariable);
  if (service == nullptr) return settings;
  settings.service = service;
  constexpr std::string_view kNameCharacters =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-";
  if (settings.service.empty() ||
      settings.service.find_first_not_of(kNameCharacters) != std::string::npos)
    return invalid(std::string(kPamVariable) + ": `" + settings.service +
                   "` must be the name of a file in /etc/pam.d: letters, digits, _ and -");
  const char* const folders[] = {"/etc/pam.d/", "/usr/lib/pam.d/", "/usr/etc/pam.d/"};
  if (std::none_of(std::begin(folders), std::end(folders), [&settings](const char* folder) {
        return access((folder + settings.service).c_str(), F_OK) == 0;
      }))
    return invalid(std::string(kPamVariable) + ": there is no /etc/pam.d/" + settings.service);
  if (seconds == nullptr) return settings;
  const char* const end = seconds + std::strlen(seconds);
  const auto [read, error] = std::from_chars(seconds, end, settings.seconds);
  if (error != std::errc() || read != end || settings.seconds < 1 || settings.seconds > kSecondsMax)
    return invalid(std::string(kPamSecondsVariable) + ": `" + seconds +
                   "` must be a whole number, 1 to " + std::to_string(kSecondsMax));
  return settings;
}

PamStart::PamStart(const PamSettings& settings, const std::string& user, uid_t uid,
                   std::vector<char*>& envp, const rlimit& files,
                   const std::vector<ResourceLimit>& named)
    : keeper_(getpid()),
      seconds_(settings.seconds),
      words_({"muster-keeper", kPamFlag, settings.service, user, std::to_string(uid),
              std::to_string(settings.seconds)}),
      envp_(envp),
      variables_(static_cast<size_t>(std::find(envp.begin(), envp.end(), nullptr) - envp.begin())),
      files_(files),
      named_(named),
      answer_(kAnswerMax) {
  for (std::string& word : words_) argv_.push_back(word.data());
  argv_.push_back(nullptr);
}

const char* PamStart::say(const char* what, int error) {
  std::snprintf(why_, sizeof why_, "PAM: %s: %s", what, strerrordesc_np(error));
  return why_;
}

const char* PamStart::open() {
  const int64_t deadline_ms = boot_now() + int64_t{seconds_} * 1000;
  // Until the exec we hold a copy of the keeper's lock, which the next keeper needs.
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != keeper_) _exit(kExitCannotStart);
  // SIGTERM ends us while we wait: the keeper's handler has no effect here.
  std::signal(SIGTERM, SIG_DFL);
  const int self = static_cast<int>(syscall(SYS_pidfd_open, getpid(), 0));
  int ends[2];
  if (self < 0 || pipe2(ends, O_CLOEXEC | O_NONBLOCK) != 0) return say("pipe", errno);
  // The C library's fork() would wait for locks of threads that we do not have.
  const auto helper = static_cast<pid_t>(syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0));
  if (helper < 0) return say("fork", errno);
  if (helper == 0) {
    setrlimit(RLIMIT_NOFILE, &files_);
    if (dup2(self, 0) == 0 && dup2(ends[1], 1) == 1)
      execve("/proc/self/exe", argv_.data(), kHelperEnvironment);
    _exit(kExitCannotStart);
  }
  close(ends[1]);
  const char* const why = listen(ends[0], deadline_ms);
  // It has forked and ended long ago, unless it could not even start.
  if (why != nullptr) kill(helper, SIGKILL);
  waitpid(helper, nullptr, 0);
  close(ends[0]);
  close(self);
  prctl(PR_SET_PDEATHSIG, 0);
  return why;
}

const char* PamStart::listen(int fd, int64_t deadline_ms) {
  sigset_t but_term;
  sigfillset(&but_term);
  sigdelset(&but_term, SIGTERM);
  size_t size = 0;
  uint32_t length = 0;
  while (size < sizeof length || size - sizeof length < length) {
    const int64_t left = deadline_ms - boot_now();
    if (left <= 0) {
      std::snprintf(why_, sizeof why_, "PAM service %s has not opened a session within %u s",
                    argv_[2], seconds_);
      return why_;
    }
    pollfd ready{fd, POLLIN, 0};
    const timespec timeout{left / 1000, left % 1000 * 1'000'000};
    if (ppoll(&ready, 1, &timeout, &but_term) <= 0) continue;
    const ssize_t more = read(fd, answer_.data() + size, answer_.size() - size);
    if (more < 0 && (errno == EAGAIN || errno == EINTR)) continue;
    if (more <= 0) {
      std::snprintf(why_, sizeof why_, "PAM service %s: its process ended without an answer",
                    argv_[2]);
      return why_;
    }
    size += static_cast<size_t>(more);
    if (size >= sizeof length) std::memcpy(&length, answer_.data(), sizeof length);
    if (length == 0 || length > answer_.size() - sizeof length) {
      if (size >= sizeof length) return "PAM: the answer is malformed";
    }
  }
  char* payload = answer_.data() + sizeof length;
  const char* const end = payload + length;
  if (*payload++ == 0) {
    std::snprintf(why_, sizeof why_, "%.*s", static_cast<int>(end - payload), payload);
    return why_;
  }
  if (static_cast<size_t>(end - payload) < sizeof granted_) return "PAM: the answer is malformed";
  std::memcpy(granted_, payload, sizeof granted_);
  if (!take_variables(payload + sizeof granted_, end)) return "PAM: there are too many variables";
  return nullptr;
}

bool PamStart::take_variables(char* begin, const char* end) {
  for (char* variable = begin; variable < end; variable += std::strlen(variable) + 1) {
    bool known = false;
    for (size_t i = 0; i < variables_ && !known; ++i) known = same_name(variable, envp_[i]);
    if (known) continue;
    if (variables_ + 1 >= envp_.size()) return false;
    envp_[variables_++] = variable;
  }
  return true;
}

bool PamStart::set_limits() const {
  for (size_t resource = 0; resource < kAnswerLimits; ++resource) {
    rlimit now{};
    const rlimit& want = granted_[resource];
    const auto which = static_cast<__rlimit_resource_t>(resource);
    if (getrlimit(which, &now) != 0) return false;
    const bool named = std::any_of(named_.begin(), named_.end(), [resource](const auto& limit) {
      return limit.resource == static_cast<int>(resource);
    });
    if (named) continue;
    if (now.rlim_cur == want.rlim_cur && now.rlim_max == want.rlim_max) continue;
    if (setrlimit(which, &want) != 0) return false;
  }
  return true;
}

}  // namespace muster::keeper
