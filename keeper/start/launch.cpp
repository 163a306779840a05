#include "keeper/start/launch.hpp"

#include "base/bytes.hpp"
#include "core/node/template_codec.hpp"
#include "keeper/protocol.hpp"
#include "keeper/start/terminal.hpp"

#include <sys/stat.h>
#include <unistd.h>
#include <utility>

namespace muster::keeper {

namespace {

char* mutable_text(std::string_view text) {
  return const_cast<char*>(text.data());  // execve does not write to it
}

bool is_program(const std::string& path) {
  struct stat info {};
  return stat(path.c_str(), &info) == 0 && S_ISREG(info.st_mode) && access(path.c_str(), X_OK) == 0;
}

}  // namespace

void Launch::name(const Token& token, bool session) {
  token_ = token.text();
  session_ = session ? token.session_text() : "";
  envp.push_back(token_.data());
  if (session) envp.push_back(session_.data());
}

void Launch::bind(const core::node::CpuList& cpus) {
  if (cpus.empty()) return;
  cpus_ = core::node::kCpusVariable + ("=" + core::node::cpu_list_text(cpus));
  envp.insert(envp.begin(), cpus_.data());  // the first of two with one name counts
}

void Launch::add_variable(std::string_view variable) {
  if (variable.starts_with("PATH=")) path = variable.substr(5);
  if (!variable.starts_with(kTokenName)) envp.push_back(mutable_text(variable));
}

// Agents of earlier versions end the frame earlier.
bool Launch::read(std::string_view order) {
  Reader in(order);
  last.cwd = in.text();
  out = in.text();
  err = in.text();
  for (auto count = in.num<uint32_t>(); count > 0 && in.ok(); --count)
    argv.push_back(mutable_text(in.text()));
  for (auto count = in.num<uint32_t>(); count > 0 && in.ok(); --count) add_variable(in.text());
  if (!in.rest().empty()) {
    limits.memory_bytes = in.num<uint64_t>();
    limits.cpu_millis = in.num<uint64_t>();
    contained = in.num<uint8_t>() != 0 || limits.any();
  }
  if (!in.rest().empty()) last.not_after_ms = in.num<int64_t>();
  if (!in.rest().empty())
    for (auto count = in.num<uint32_t>(); count > 0 && in.ok(); --count) {
      auto& file = secret_files.emplace_back();
      file.variable = in.text();
      file.path = in.text();
      file.optional = in.num<uint8_t>() != 0;
    }
  const uint8_t reads = in.rest().empty() ? uint8_t{0} : in.num<uint8_t>();
  input = reads != 0;
  terminal = (reads & kReadsTerminal) != 0;
  if (!in.rest().empty()) {
    Reader inner(in.text());
    if (!inner.rest().empty()) space = core::node::read_space(inner);
    if (!inner.ok()) return false;
  }
  if (!in.rest().empty()) {
    last.privileges.none_new = in.num<uint8_t>() != 0;
    last.privileges.dropped = in.num<uint64_t>();
  }
  if (!in.rest().empty()) settings = core::node::read_settings(in.text());
  if (!in.rest().empty()) cpus = in.num<uint32_t>();
  return in.ok();
}

void Launch::take(OwnerCommand built) {
  command = std::move(built);
  last.cwd = std::move(command.cwd);
  last.home = command.home;
  secret_files = std::move(command.secrets);
  for (std::string& word : command.argv) argv.push_back(word.data());
  for (const std::string& variable : command.env) add_variable(variable);
}

SpacePlan Launch::space_plan(int report) const {
  return {.last = last, .terminal = terminal, .report = report};
}

void Launch::wrap(const Fd& plan) {
  std::vector<char*> before;
  if (plan) {
    plan_fd_ = std::to_string(plan.get());
    before = {mutable_text(kSpaceName), plan_fd_.data()};
  }
  if (terminal) before.push_back(mutable_text(kTerminalName));
  argv.insert(argv.begin(), before.begin(), before.end());
  wrapped_ = !before.empty();
  if (plan) last = {.cwd = "/", .not_after_ms = last.not_after_ms};
}

std::vector<std::string> Launch::programs(bool own) const {
  if (wrapped_) return {kOwnProgram};
  std::vector<std::string> all = programs_named(argv[0], path, own ? last.cwd : ".");
  if (own && all.size() > 1)
    for (std::string& one : all)
      if (is_program(one)) return {std::move(one)};
  return all;
}

void Launch::end(Secrets& secrets) {
  secrets.add_to(envp);
  argv.push_back(nullptr);
  envp.push_back(nullptr);
}

}  // namespace muster::keeper
