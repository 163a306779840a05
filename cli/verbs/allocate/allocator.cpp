#include "cli/verbs/allocate/allocator.hpp"

#include "base/log.hpp"
#include "base/network/address_list.hpp"
#include "base/process/shell_words.hpp"
#include "cli/verbs/allocate/cluster.hpp"
#include "cli/verbs/allocate/engines.hpp"
#include "client/connect/discovery.hpp"
#include "client/follow/signals.hpp"
#include "client/settings/files.hpp"
#include "client/terminal/exit_codes.hpp"
#include "client/terminal/text.hpp"
#include "drill/process/command.hpp"

#include <algorithm>
#include <filesystem>
#include <iostream>
#include <sys/stat.h>
#include <utility>

namespace muster::cli {
namespace allocate {
namespace {

constexpr Millis kEngineCommandMax = 60'000;  // of a command of the batch system
constexpr char kTokenEnd[] = ".token";
constexpr int kGpusMax = 64;  // of a node

std::string typed(const std::vector<std::string>& words) {
  std::string line;
  for (const std::string& word : words) line += (line.empty() ? "" : " ") + shell_quoted(word);
  return line;
}

Result<std::string> run(const Command& command) {
  auto output = drill::output_of(command.words, command.input, kEngineCommandMax);
  if (output) return output;
  const std::string& program = command.words[0];
  const bool by_another = program == "env" || program == "/bin/sh";
  return Error{Errc::unavailable, (by_another ? "" : program + ": ") + output.error().message, {}};
}

// What the agents' tokens allow them to claim.
Json claims_of(const AllocateOptions& options) {
  Json claims = {{"labels", {"muster.dev/pool=" + options.pool.name}},
                 {"resources", Json::object()}};
  for (const std::string& label : options.labels) claims["labels"].push_back(label);
  for (const std::string& one : options.resources) {
    const size_t equals = one.find('=');
    claims["resources"][one.substr(0, equals)] = whole_number(one.substr(equals + 1)).value_or(0);
  }
  for (const char* found : {"nvidia.com/gpu", "amd.com/gpu"})  // by the agents
    if (!claims["resources"].contains(found)) claims["resources"][found] = kGpusMax;
  return claims;
}

// For logs and tokens: of the user's, and closed to others.
Status make_dir(const std::string& dir) {
  std::error_code error;
  std::filesystem::create_directories(dir, error);
  if (error) return Error{Errc::unavailable, dir + ": " + error.message(), {}};
  if (chmod(dir.c_str(), 0700) != 0)
    return invalid(dir + ": cannot be closed to other users; --dir must be a directory of yours");
  return Nothing{};
}

class Allocator {
 public:
  Allocator(const AllocateOptions& options, Signals& signals)
      : o_(options),
        signals_(signals),
        client_(connect(options.target)),
        cluster_(*client_, options.pool.name, options.queue, options.target.ns),
        engine_(engine_of(options.engine)),
        request_(options.request) {}

  int run();

 private:
  Status find_coordinator();
  Status look();
  Status keep(std::vector<PoolAllocation> allocations, const std::string& standing);
  void act(const Plan& plan);
  bool act(const Action& action);
  bool submit();
  bool give_token(const std::string& id);
  void remove_old_tokens();
  void tell(const News& news);
  void tell_standing(const std::string& text);
  void leave();
  // Warns, but not again of the same.
  void warn(const std::string& text) {
    if (std::exchange(warned_, text) != text) log::warn("{}", text);
  }
  std::string token_path(const std::string& node) const {
    return request_.dir + "/" + node + kTokenEnd;
  }

  const AllocateOptions& o_;
  Signals& signals_;
  const std::unique_ptr<ApiClient> client_;
  Cluster cluster_;
  const std::unique_ptr<Engine> engine_;
  Request request_;
  std::optional<Pool> pool_;
  std::string warned_, standing_;
  bool away_ = false;  // the last look failed
};

// Agents on other machines need TLS, and a token to join with. `--coordinator` without a port of
// that kind is one that they can use without.
Status Allocator::find_coordinator() {
  std::string& given = request_.coordinator;
  auto tls = cluster_.agents_address();
  if (!tls) return o_.dry_run && !given.empty() ? Status(Nothing{}) : tls.error();
  if (given.empty() && tls->empty())
    return invalid(
        "--coordinator: the coordinator has no address for agents on other machines; start it with "
        "--listen-tls ADDR:PORT, or give the address that the nodes can connect to");
  if (given.empty()) given = *tls;
  const auto port = [](const std::string& address) { return address.substr(address.rfind(':')); };
  request_.with_token = !tls->empty() && port(given) == port(*tls);
  return Nothing{};
}

int Allocator::run() {
  if (Status s = find_coordinator(); !s) return fail(s.error());
  if (o_.dry_run) {
    const Command command = engine_->submit(request_);
    std::cout << typed(command.words) << "\n" << command.input << std::flush;
    return kDone;
  }
  if (Status s = make_dir(request_.dir); !s) return fail(s.error());
  Books books;
  if (o_.pool.budget_ms) {
    auto kept = cluster_.books();
    if (!kept) return fail(kept.error());
    books = std::move(*kept);
  }
  pool_.emplace(o_.pool, std::move(books));
  for (bool first = true;; first = false) {
    if (Status s = look(); !s) {
      const Errc code = s.error().code;
      if (code == Errc::foreign || (first && code != Errc::overloaded)) return fail(s.error());
      away_ = true;
      warn(s.error().message);
    } else if (std::exchange(away_, false)) {
      log::info("the coordinator and the batch system answer again");
      warned_.clear();
    }
    if (signals_.next(o_.every_ms) != 0) break;
  }
  leave();
  return kDone;
}

Status Allocator::look() {
  Look look;
  auto output = allocate::run(engine_->list(o_.pool.name));
  if (!output) return output.error();
  auto allocations = engine_->listed(*output);
  if (!allocations) return allocations.error();
  look.allocations = std::move(*allocations);
  if (Status s = cluster_.look(look); !s) return s;
  look.now = wall_now();
  const Plan plan = pool_->look(look);
  act(plan);
  if (Status s = keep(pool_->allocations(), plan.standing); !s) warn(s.error().message);
  if (request_.with_token) remove_old_tokens();
  return Nothing{};
}

Status Allocator::keep(std::vector<PoolAllocation> allocations, const std::string& standing) {
  const Books books = pool_->books();
  return cluster_.keep(o_.pool.budget_ms ? &books : nullptr, {.ns = o_.target.ns,
                                                              .pool = o_.pool.name,
                                                              .engine = o_.engine,
                                                              .allocations = std::move(allocations),
                                                              .standing = standing,
                                                              .seen_ms = wall_now()});
}

void Allocator::act(const Plan& plan) {
  for (const News& news : plan.news) tell(news);
  for (const Action& action : plan.actions)
    if (!act(action)) break;
  tell_standing(plan.standing);
}

// False: none of the later ones is to be tried now.
bool Allocator::act(const Action& action) {
  switch (action.kind) {
    case Action::Kind::submit:
      return submit();
    case Action::Kind::cancel:
    case Action::Kind::end: {
      const bool gently = action.kind == Action::Kind::cancel;
      auto done = allocate::run(gently ? engine_->leave(action.what) : engine_->end(action.what));
      if (!done) warn("cannot cancel allocation " + action.what + ": " + done.error().message);
      return true;
    }
    case Action::Kind::cordon:
    case Action::Kind::uncordon: {
      Status done = cluster_.cordon(action.what, action.kind == Action::Kind::cordon);
      // Else the caller may not do it.
      if (done || done.error().code == Errc::unavailable || done.error().code == Errc::not_found)
        return true;
      log::warn("nodes are given back without being cordoned first: {}", done.error().message);
      pool_->cannot_cordon();
      return true;
    }
    case Action::Kind::forget:
      if (Status s = cluster_.forget(action.what); !s)
        warn("node/" + action.what + " is over, and stays listed: " + s.error().message);
      return true;
  }
  return true;
}

bool Allocator::submit() {
  auto output = allocate::run(engine_->submit(request_));
  auto id = output ? engine_->submitted(*output) : Result<std::string>(output.error());
  if (!id) {
    tell(pool_->submission_failed(id.error().message, wall_now()));
    return false;
  }
  pool_->submitted(*id, wall_now());
  log::info("allocation {} submitted", *id);
  return !request_.with_token || give_token(*id);
}

bool Allocator::give_token(const std::string& id) {
  const std::string node = node_of(o_.pool.name, id);
  auto token = cluster_.node_token(node, claims_of(o_));
  Status written = token ? write_file(token_path(node), *token) : Status(token.error());
  if (written) return true;
  tell(pool_->submission_failed("there is no token for " + node + ": " + written.error().message,
                                wall_now()));
  act({Action::Kind::end, id});
  return false;
}

// Those of allocations that are over.
void Allocator::remove_old_tokens() {
  std::set<std::string> wanted;
  for (const std::string& id : pool_->ids()) wanted.insert(token_path(node_of(o_.pool.name, id)));
  std::error_code error;
  for (const auto& file : std::filesystem::directory_iterator(request_.dir, error))
    if (file.path().extension() == kTokenEnd && !wanted.contains(file.path().string()))
      std::filesystem::remove(file.path(), error);
}

void Allocator::tell(const News& news) {
  if (news.bad)
    log::warn("{}", news.text);
  else
    log::info("{}", news.text);
}

void Allocator::tell_standing(const std::string& text) {
  const bool same = without_digits(standing_) == without_digits(text);
  standing_ = text;
  if (!same && !text.empty()) log::info("{}", text);
}

void Allocator::leave() {
  const size_t queued = pool_->count(Phase::queued), running = pool_->count(Phase::running);
  const std::string what =
      std::to_string(queued) + " queued and " + std::to_string(running) + " running allocations";
  if (!o_.cancel_on_exit) {
    if (queued + running > 0)
      log::info("{} stay; the same command takes them over again, --cancel-on-exit ends them",
                what);
    return;
  }
  for (const std::string& id : pool_->ids())
    act({pool_->is_running(id) ? Action::Kind::cancel : Action::Kind::end, id});
  log::info("{} cancelled", what);
  if (Status s = cluster_.remove_report(o_.pool.budget_ms.has_value()); !s) warn(s.error().message);
}

}  // namespace
}  // namespace allocate

int execute(const AllocateOptions& options) {
  Signals signals;
  log::setup("allocate", "info");
  return allocate::Allocator(options, signals).run();
}

}  // namespace muster::cli
