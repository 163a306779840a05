// Pam, in the helper: one process per session, from before the pod's process starts until it ends.
#include "base/files/whole_write.hpp"
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
#include <pwd.h>
#include <security/pam_appl.h>
#include <string_view>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace muster::keeper {
namespace {

constexpr size_t kReasonMax = 300;  // bytes

// Kills this process unless it is stopped in time: no module can catch or reset that.
class Watchdog {
 public:
  explicit Watchdog(unsigned seconds) : seconds_(seconds) {
    sigevent how{};
    how.sigev_notify = SIGEV_SIGNAL;
    how.sigev_signo = SIGKILL;
    made_ = timer_create(CLOCK_MONOTONIC, &how, &timer_) == 0;
  }
  void start() { set(seconds_); }
  void stop() { set(0); }

 private:
  void set(unsigned seconds) {
    itimerspec when{};
    when.it_value.tv_sec = seconds;
    if (made_) timer_settime(timer_, 0, &when, nullptr);
  }
  const unsigned seconds_;
  timer_t timer_{};
  bool made_ = false;
};

// Messages of modules go into the reason; their prompts are not answered.
int converse(int count, const pam_message** messages, pam_response** responses, void* said) {
  auto& text = *static_cast<std::string*>(said);
  for (int i = 0; i < count; ++i) {
    const int style = messages[i]->msg_style;
    if (style != PAM_ERROR_MSG && style != PAM_TEXT_INFO) return PAM_CONV_ERR;
    if (messages[i]->msg != nullptr && messages[i]->msg[0] != '\0')
      text += (text.empty() ? "" : "; ") + std::string(messages[i]->msg);
  }
  // The caller frees it.
  *responses =
      static_cast<pam_response*>(std::calloc(static_cast<size_t>(count), sizeof(pam_response)));
  return *responses == nullptr ? PAM_BUF_ERR : PAM_SUCCESS;
}

void send_answer(int fd, bool opened, const std::string& payload) {
  const auto length = static_cast<uint32_t>(payload.size() + 1);
  std::string bytes(sizeof length, '\0');
  std::memcpy(bytes.data(), &length, sizeof length);
  bytes += opened ? '\1' : '\0';
  write_whole(fd, bytes + payload);  // false: nobody reads it anymore
}

std::vector<rlimit> own_limits() {
  std::vector<rlimit> limits(kAnswerLimits);
  for (size_t resource = 0; resource < limits.size(); ++resource)
    getrlimit(static_cast<__rlimit_resource_t>(resource), &limits[resource]);
  return limits;
}

class PamSession {
 public:
  PamSession(std::string service, std::string user)
      : service_(std::move(service)), user_(std::move(user)) {}

  // Empty, or why it failed.
  std::string open(uid_t uid) {
    if (std::string why = check_user(uid); !why.empty()) return reason("account", why);
    const pam_conv conversation{converse, &said_};
    const char* step = "start";
    int code = pam_start(service_.c_str(), user_.c_str(), &conversation, &handle_);
    if (code == PAM_SUCCESS) code = pam_set_item(handle_, PAM_TTY, "muster");
    if (code == PAM_SUCCESS) code = pam_acct_mgmt(handle_, 0), step = "account";
    if (code == PAM_SUCCESS) {
      said_.clear();
      code = pam_setcred(handle_, PAM_ESTABLISH_CRED), step = "credentials";
      has_credentials_ = code == PAM_SUCCESS;
    }
    if (code == PAM_SUCCESS) code = pam_open_session(handle_, 0), step = "session";
    opened_ = code == PAM_SUCCESS;
    if (opened_) return "";
    std::string why = pam_strerror(handle_, code);
    if (!said_.empty()) why += ": " + said_;
    close();
    return reason(step, why);
  }

  // Our current limits, and the variables of the session. Empty: there are too many.
  std::string payload() {
    const std::vector<rlimit> limits = own_limits();
    std::string bytes(reinterpret_cast<const char*>(limits.data()), limits.size() * sizeof(rlimit));
    char** const variables = pam_getenvlist(handle_);
    size_t count = 0;
    for (char** variable = variables; variable != nullptr && *variable != nullptr; ++variable) {
      bytes.append(*variable, std::strlen(*variable) + 1);
      ++count;
    }
    return count > kPamVariablesMax || bytes.size() > kAnswerMax / 2 ? "" : bytes;
  }

  void close() {
    int code = PAM_SUCCESS;
    said_.clear();
    if (opened_) tell("pam_close_session", code = pam_close_session(handle_, 0));
    if (has_credentials_) tell("pam_setcred", code = pam_setcred(handle_, PAM_DELETE_CRED));
    if (handle_ != nullptr) pam_end(handle_, code);
    handle_ = nullptr;
    opened_ = has_credentials_ = false;
  }

  std::string reason(const char* step, const std::string& why) const {
    std::string text = "PAM service " + service_ + ", " + step + " of " + user_ + ": " + why;
    for (char& c : text)
      if (static_cast<unsigned char>(c) < ' ') c = ' ';
    return text.substr(0, kReasonMax);
  }

 private:
  // A name may mean another user here than where the job was created.
  std::string check_user(uid_t uid) const {
    passwd entry{}, *found = nullptr;
    std::vector<char> buffer(64u << 10);
    const int error = getpwnam_r(user_.c_str(), &entry, buffer.data(), buffer.size(), &found);
    if (found == nullptr)
      return error == 0 ? "this node has no such user" : std::string(std::strerror(error));
    if (found->pw_uid == uid) return "";
    return "on this node it is uid " + std::to_string(found->pw_uid) + ", not " +
           std::to_string(uid);
  }

  void tell(const char* what, int code) const {
    if (code != PAM_SUCCESS)
      std::fprintf(stderr, "muster-keeper: %s\n",
                   reason(what, pam_strerror(handle_, code)).c_str());
  }

  const std::string service_, user_;
  std::string said_;
  pam_handle_t* handle_ = nullptr;
  bool has_credentials_ = false, opened_ = false;
};

// Modules' programs get a service's signal handling; signals meant for others do not end us early.
void set_helper_signals() {
  for (const int number : {SIGTERM, SIGHUP, SIGINT, SIGQUIT, SIGPIPE})
    std::signal(number, [](int) {});
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
}

void wait_for_end(int pidfd) {
  pollfd end{pidfd, POLLIN, 0};
  while (poll(&end, 1, -1) <= 0) {
  }
}

void run_session(int pod, int answer, PamSession& session, uid_t uid, unsigned seconds) {
  Watchdog watchdog(seconds * kPamPatience);
  watchdog.start();
  const std::vector<rlimit> before = own_limits();
  if (const std::string why = session.open(uid); !why.empty())
    return send_answer(answer, false, why);
  const std::string payload = session.payload();
  if (payload.empty())
    send_answer(answer, false, session.reason("session", "there are too many variables"));
  else
    send_answer(answer, true, payload);
  close(answer);
  // The limits are for the pod's process; modules that close the session should not hit them.
  for (size_t resource = 0; resource < before.size(); ++resource)
    setrlimit(static_cast<__rlimit_resource_t>(resource), &before[resource]);
  watchdog.stop();
  wait_for_end(pod);
  watchdog.start();
  session.close();
}

template <class T>
bool whole_number(const char* text, T& value) {
  const char* const end = text + std::strlen(text);
  const auto [read, error] = std::from_chars(text, end, value);
  return error == std::errc() && read == end;
}

}  // namespace

int pam_session_main(int argc, char** argv) {
  const int pod = fcntl(0, F_DUPFD_CLOEXEC, 3), answer = fcntl(1, F_DUPFD_CLOEXEC, 3);
  uid_t uid = 0;
  unsigned seconds = 0;
  if (argc != 6 || geteuid() != 0 || !whole_number(argv[4], uid) ||
      !whole_number(argv[5], seconds) || seconds == 0 ||
      syscall(SYS_pidfd_send_signal, pod, 0, nullptr, 0) != 0) {
    std::fprintf(stderr, "muster-keeper: %s is internal; only the keeper may use it\n", kPamFlag);
    return 2;
  }
  const int null = open("/dev/null", O_RDWR | O_CLOEXEC);
  if (null < 0 || dup2(null, 0) < 0 || dup2(null, 1) < 0) return 1;
  const int flags = fcntl(answer, F_GETFL);
  if (flags >= 0) fcntl(answer, F_SETFL, flags & ~O_NONBLOCK);
  // We are a child of the pod's process. Our own is orphaned when we exit, so the keeper gets it.
  const pid_t own = fork();
  if (own != 0) return own < 0 ? 1 : 0;
  setsid();
  prctl(PR_SET_NAME, "muster-pam");
  umask(022);
  set_helper_signals();
  PamSession session(argv[2], argv[3]);
  run_session(pod, answer, session, uid, seconds);
  return 0;
}

}  // namespace muster::keeper
