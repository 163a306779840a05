// muster cp: copies files to and from running pods, through the sessions of muster exec.
//
// A file goes through cat, a directory (-r) through tar on both sides. A file that arrives here has
// its name only once it is whole. The command in the pod runs in a child process, which may end as
// it likes.
#include "base/fd.hpp"
#include "cli/verbs/run/exec.hpp"
#include "cli/verbs/words.hpp"
#include "client/connect/objects.hpp"
#include "client/terminal/exit_codes.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <iostream>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <utility>

namespace muster::cli {

struct CpOptions {
  ExecOptions exec;  // the pod, without a command
  bool to_pod = false;
  bool recursive = false;
  std::string here, there;  // paths; `there` begins in the pod's directory
};

namespace {

namespace fs = std::filesystem;

constexpr int kNoProgram = 127;

int status_of(pid_t child) {
  int status = 0;
  while (waitpid(child, &status, 0) < 0)
    if (errno != EINTR) return kFailed;
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

// Forks, with this input and output (negative: our own). True in the child.
bool forked(int in, int out, pid_t& child) {
  std::cout.flush();
  child = fork();
  if (child != 0) return false;
  if (in >= 0) dup2(in, STDIN_FILENO);
  if (out >= 0) dup2(out, STDOUT_FILENO);
  return true;
}

// Runs the command in the pod and returns its exit code.
int in_pod(const CpOptions& o, std::vector<std::string> command, int in, int out) {
  ExecOptions exec = o.exec;
  exec.command = std::move(command);
  exec.input = in >= 0;
  pid_t child = 0;
  if (forked(in, out, child)) {
    const int code = execute(exec);
    std::cout.flush();
    _exit(code);
  }
  return child < 0 ? fail(kFailed, std::string("fork: ") + std::strerror(errno)) : status_of(child);
}

// Starts tar here, at the other end of a pipe, of which it returns ours.
Fd tar_here(std::vector<std::string> words, bool reads, pid_t& child) {
  std::array<int, 2> ends{};
  if (pipe2(ends.data(), O_CLOEXEC) < 0) return Fd();
  Fd ours(ends[reads ? 1 : 0]), theirs(ends[reads ? 0 : 1]);
  if (forked(reads ? theirs.get() : -1, reads ? -1 : theirs.get(), child)) {
    std::vector<char*> argv;
    for (std::string& word : words) argv.push_back(word.data());
    argv.push_back(nullptr);
    execvp("tar", argv.data());
    std::cerr << "muster: tar: " << std::strerror(errno) << std::endl;
    _exit(kNoProgram);
  }
  return ours;
}

// Without dots and a slash at the end.
fs::path normal(const std::string& path) {
  fs::path name = fs::path(path).lexically_normal();
  return name.has_filename() ? name : name.parent_path();
}

std::string base_of(const std::string& path) {
  return normal(path).filename();
}

std::string dir_of(const std::string& path) {
  const fs::path dir = normal(path).parent_path();
  return dir.empty() ? "." : dir.string();
}

bool is_dir(const std::string& path) {
  std::error_code ignored;
  return fs::is_directory(path, ignored);
}

int unusable(const std::string& path) {
  return fail(kFailed, path + ": " + std::strerror(errno));
}

int file_from(const CpOptions& o) {
  const fs::path target = is_dir(o.here) ? fs::path(o.here) / base_of(o.there) : fs::path(o.here);
  std::string part =
      (target.parent_path() / ("." + target.filename().string() + ".XXXXXX")).string();
  const Fd file(mkostemp(part.data(), O_CLOEXEC));
  if (!file) return unusable(target);
  const mode_t mask = umask(0);
  umask(mask);
  int code = in_pod(o, {"cat", "--", o.there}, -1, file.get());
  if (code == 0 &&
      (fchmod(file.get(), 0666 & ~mask) < 0 || rename(part.c_str(), target.c_str()) < 0))
    code = unusable(target);
  if (code != 0) unlink(part.c_str());
  return code;
}

int file_to(const CpOptions& o) {
  const Fd file(open(o.here.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file) return unusable(o.here);
  return in_pod(o,
                {"sh", "-c", R"(if [ -d "$1" ]; then exec cat >"$1/$2"; else exec cat >"$1"; fi)",
                 "sh", o.there, base_of(o.here)},
                file.get(), -1);
}

int dir_from(const CpOptions& o) {
  std::vector<std::string> words = {"tar", "xf", "-", "--no-same-owner", "-C", o.here};
  const bool made = !is_dir(o.here);
  if (made) {
    if (mkdir(o.here.c_str(), 0777) < 0) return unusable(o.here);
    words.emplace_back("--strip-components=1");
  }
  pid_t tar = 0;
  Fd pipe = tar_here(std::move(words), true, tar);
  if (!pipe) return unusable("tar");
  const int code = in_pod(o,
                          {"sh", "-c", R"(cd -- "$1" && exec tar cf - -- "$2")", "sh",
                           dir_of(o.there), base_of(o.there)},
                          -1, pipe.get());
  pipe = Fd();
  const int unpacked = status_of(tar);
  if (code != 0 && made) rmdir(o.here.c_str());  // unless something has arrived
  return code != 0 ? code : unpacked;
}

int dir_to(const CpOptions& o) {
  pid_t tar = 0;
  Fd pipe = tar_here({"tar", "cf", "-", "-C", dir_of(o.here), "--", base_of(o.here)}, false, tar);
  if (!pipe) return unusable("tar");
  const int code = in_pod(
      o,
      {"sh", "-c",
       R"([ -d "$1" ] && exec tar xf - -C "$1"; mkdir -- "$1" && exec tar xf - -C "$1" --strip-components=1)",
       "sh", o.there},
      pipe.get(), -1);
  pipe = Fd();
  const int packed = status_of(tar);
  return code != 0 ? code : packed;
}

// "POD:PATH", "pod/POD:PATH" or "job/J:PATH"; nothing: a path of this machine.
std::optional<std::pair<std::string, std::string>> pod_and_path(const std::string& word) {
  const size_t colon = word.find(':');
  if (colon == std::string::npos || colon == 0 || word.starts_with('.')) return std::nullopt;
  const std::string pod = word.substr(0, colon);
  const size_t slash = pod.find('/');
  if (slash != std::string::npos && !parse_kind(pod.substr(0, slash))) return std::nullopt;
  return std::pair(pod, word.substr(colon + 1));
}

std::optional<Usage> read_copy(const std::vector<std::string>& what, CpOptions& o) {
  if (what.size() != 2)
    return Usage{"needs a source and a target: muster cp POD:PATH FILE, or FILE POD:PATH"};
  const auto from = pod_and_path(what[0]), to = pod_and_path(what[1]);
  if (from && to) return Usage{"copies between two pods go through this machine: copy twice"};
  if (!from && !to)
    return Usage{"neither `" + what[0] + "` nor `" + what[1] +
                 "` is in a pod: write POD:PATH or job/J:PATH"};
  o.to_pod = to.has_value();
  o.here = what[o.to_pod ? 0 : 1];
  o.there = (o.to_pod ? to : from)->second;
  if (o.there.empty()) return Usage{"`" + what[o.to_pod ? 1 : 0] + "`: has no path"};
  if (auto wrong = read_pod_or_job((o.to_pod ? to : from)->first, o.exec.pod, o.exec.job))
    return wrong;
  if (auto wrong = check_chosen(o.exec, "muster cp job/J:PATH FILE --index 3")) return wrong;
  if (o.to_pod && !o.recursive && is_dir(o.here))
    return Usage{"`" + o.here + "`: is a directory: add -r"};
  return std::nullopt;
}

}  // namespace

int execute(const CpOptions& options) {
  // Ctrl-C is for the command in the pod; then we clean up.
  std::signal(SIGINT, [](int) {});
  std::signal(SIGPIPE, SIG_IGN);
  if (options.recursive) return options.to_pod ? dir_to(options) : dir_from(options);
  return options.to_pod ? file_to(options) : file_from(options);
}

Verb cp_verb() {
  auto w = std::make_shared<Raw<CpOptions, std::vector<std::string>>>();
  ExecOptions& exec = w->o.exec;
  return {
      .title = {"Jobs", "cp", "Copy files to and from a running pod"},
      .rows = {{"what", "SOURCE TARGET",
                "One of them in a pod: POD:PATH, or job/J:PATH with --index or --task. PATH begins "
                "in the working directory of the pod",
                &w->what, kAnything, kRequired},
               {"-r,--recursive", "", "Copy a directory, with tar", &w->o.recursive},
               index_row(exec.index),
               task_row(exec.task),
               {"-c,--container", "NAME",
                "Container whose files these are (default: the pod's first container)",
                &exec.container}},
      .asks = {&exec.target},
      .footer =
          "Examples:\n  muster cp sweep-7-x2bqd:/tmp/core.123 .\n"
          "  muster cp job/sweep:checkpoint.h5 last.h5 --index 7\n"
          "  muster cp params.json job/train:params.json\n"
          "  muster cp -r job/train:logs train-logs\n"
          "A target that is a directory gets the file or directory in it. A file that arrives here "
          "appears once it is whole.\n"
          "Exit codes: 0 copied; those of muster exec; 1 or 2 from cat or tar, which say why.",
      .finish = [w](const Given&) -> Judged { return judged(read_copy(w->what, w->o), w->o); }};
}

}  // namespace muster::cli
