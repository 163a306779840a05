#include "client/terminal/starved.hpp"

#include "base/last_words.hpp"
#include "base/lines/stderr_lines.hpp"
#include "client/terminal/exit_codes.hpp"

#include <kj/exception.h>

#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <cxxabi.h>
#include <dirent.h>
#include <new>
#include <string_view>
#include <sys/mman.h>
#include <sys/resource.h>
#include <system_error>
#include <unistd.h>

namespace muster::cli {
namespace {

// Those that say that something ran out, rather than that a call was wrong.
constexpr int kWants[] = {EMFILE, ENFILE, EAGAIN, ENOMEM};

// "ulimit -n is 20"; empty: there is no limit.
std::string limit_text(__rlimit_resource resource, char letter, uint64_t unit = 1) {
  rlimit limit{};
  if (getrlimit(resource, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return "";
  return std::string("ulimit -") + letter + " is " + std::to_string(limit.rlim_cur / unit);
}

std::string memory_limit_text() {
  return limit_text(RLIMIT_AS, 'v', 1024);
}

// A thread needs a place among the processes, and memory for its stack.
std::string thread_limits_text() {
  const std::string processes = limit_text(RLIMIT_NPROC, 'u'), memory = memory_limit_text();
  return processes + (processes.empty() || memory.empty() ? "" : ", ") + memory;
}

std::string with_advice(const std::string& what, const std::string& raise,
                        const std::string& limits) {
  return what + ": raise " + raise + (limits.empty() ? "" : " (" + limits + ")");
}

// Address space that lets us say that memory ran out: a thread without an arena of the heap cannot
// use what others free there.
constexpr size_t kSpareBytes = 1u << 20;
void* spare_memory = MAP_FAILED;

std::atomic<bool> is_ending = false;
thread_local bool ends_process = false;

// Must precede the first allocation of a thread that ends the process. Of several threads, one goes
// on; the others may hold any lock.
void begin_end() {
  if (ends_process) {  // not even the spare memory sufficed
    say_last("muster: out of memory\n");
    _exit(kUnreachable);
  }
  if (is_ending.exchange(true))
    for (;;) pause();
  ends_process = true;
  if (spare_memory != MAP_FAILED) munmap(spare_memory, kSpareBytes);
}

// A job whose work takes all memory must be found by the next start, like any crash.
[[noreturn]] void end_in_want(const std::string& want) {
  say_last("muster: " + want + "\n");
  if (WorksOn::current() == 0) _exit(kUnreachable);
  std::abort();
}

// Called where memory runs out, since not every library lets std::bad_alloc pass.
void end_without_memory() {
  begin_end();
  end_in_want(want_text(ENOMEM));
}

[[noreturn]] void end_by_exception() {
  begin_end();
  const std::exception_ptr exception = std::current_exception();
  std::string why = "an exception ended the process";
  if (exception) {
    if (const auto want = want_of(exception)) end_in_want(*want);
    try {
      std::rethrow_exception(exception);
    } catch (const kj::Exception& e) {
      why = std::string("uncaught exception: ") + kj::str(e).cStr();
    } catch (const std::exception& e) {
      why = std::string("uncaught exception: ") + e.what();
    } catch (...) {
      const std::type_info* type = abi::__cxa_current_exception_type();
      why = std::string("uncaught exception of type ") + (type == nullptr ? "?" : type->name());
    }
  }
  say_last("muster: " + why + "\n");
  std::abort();
}

}  // namespace

std::string want_text(int error) {
  std::string what = std::strerror(error);
  switch (error) {
    case EMFILE:
      return with_advice(what, "the limit on open files", limit_text(RLIMIT_NOFILE, 'n'));
    case ENFILE:
      return with_advice(what, "the machine's limit on open files, fs.file-max", "");
    case EAGAIN:
      return with_advice("cannot start a thread or process: " + what,
                         "the limits on processes and memory of the user or the cgroup",
                         thread_limits_text());
    case ENOMEM:
      return with_advice(what, "the limit on memory of the process or the cgroup",
                         memory_limit_text());
    default:
      return what;
  }
}

std::optional<std::string> want_of(const std::exception_ptr& exception) {
  auto told = [](int error) -> std::optional<std::string> {
    for (const int want : kWants)
      if (error == want) return want_text(error);
    return std::nullopt;
  };
  try {
    std::rethrow_exception(exception);
  } catch (const kj::Exception& e) {
    if (e.getType() != kj::Exception::Type::OVERLOADED) return std::nullopt;
    const std::string_view description = e.getDescription().cStr();
    for (const int want : kWants)
      if (description.ends_with(std::strerror(want))) return want_text(want);
    if (description.find("bad_alloc") != std::string_view::npos) return want_text(ENOMEM);
    return std::nullopt;
  } catch (const std::bad_alloc&) {
    return want_text(ENOMEM);
  } catch (const std::system_error& e) {
    return told(e.code().value());
  } catch (...) {
    return std::nullopt;
  }
}

void report_uncaught() {
  spare_memory =
      mmap(nullptr, kSpareBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  std::set_terminate(end_by_exception);
  std::set_new_handler(end_without_memory);
}

Status want_descriptors(uint64_t needed) {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return Nothing{};
  uint64_t open = 0;
  if (DIR* dir = opendir("/proc/self/fd")) {
    while (const dirent* entry = readdir(dir)) open += entry->d_name[0] != '.';
    closedir(dir);
    --open;  // the directory's own
  } else {
    if (errno != EMFILE) return Nothing{};
    open = limit.rlim_cur;
  }
  if (open + needed <= limit.rlim_cur) return Nothing{};
  return Error{Errc::unavailable,
               want_text(EMFILE) + "; " + std::to_string(open) + " are open and at least " +
                   std::to_string(needed) + " more are needed",
               {}};
}

}  // namespace muster::cli
