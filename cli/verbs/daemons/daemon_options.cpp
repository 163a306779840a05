#include "cli/verbs/daemons/daemon_options.hpp"

#include "base/network/address_list.hpp"
#include "base/peer/local_sockets.hpp"
#include "base/peer/users.hpp"
#include "cli/verbs/when.hpp"
#include "client/terminal/text.hpp"
#include "core/spec/values/duration.hpp"
#include "core/spec/values/quantity.hpp"
#include "core/spec/values/well_known.hpp"

#include <arpa/inet.h>
#include <array>
#include <charconv>
#include <cstdlib>
#include <fstream>
#include <limits>
#include <netinet/in.h>
#include <unistd.h>

namespace muster::cli {
namespace {

constexpr uint32_t kDevicesMax = 100'000;  // of one resource; more is a typo

// Parses settings into their targets. Keeps the first error.
class Reader {
 public:
  explicit Reader(const Settings& settings) : settings_(settings) {}

  Status status() const { return problem_.empty() ? Status(Nothing{}) : invalid(problem_); }
  const Setting& setting(const char* name) const { return settings_[name]; }
  void fail(const char* name, const std::string& what) {
    if (problem_.empty()) problem_ = setting(name).place() + ": " + what;
  }

  void text(const char* name, std::string& target) const { target = setting(name).text(); }
  // An empty value on the command line is a mistake, such as a shell variable that is not set.
  void filled(const char* name, const char* what) {
    if (setting(name).layer == Layer::flag && setting(name).text().empty())
      fail(name, std::string("the value is empty; must be ") + what);
  }
  // In its canonical form.
  void ip(const char* name, std::string& target) {
    const std::string text = setting(name).text();
    if (text.empty()) return;
    for (const int family : {AF_INET, AF_INET6}) {
      std::array<unsigned char, sizeof(in6_addr)> address{};
      std::array<char, INET6_ADDRSTRLEN> canonical{};
      if (inet_pton(family, text.c_str(), address.data()) != 1) continue;
      target = inet_ntop(family, address.data(), canonical.data(), canonical.size());
      return;
    }
    fail(name, "`" + text + "`: must be an IP address, such as 10.0.0.12 or fd00::12");
  }
  void toggle(const char* name, bool& target) const { target = setting(name).text() == "true"; }

  void span(const char* name, Millis& target) {
    const std::string text = setting(name).text();
    auto parsed = core::parse_duration(text == "0" ? "0s" : text);
    if (!parsed) return fail(name, parsed.error().message);
    target = *parsed;
  }

  template <class T>
  void whole(const char* name, int64_t low, int64_t high, T& target) {
    const std::string text = setting(name).text();
    if (text.empty()) return;
    int64_t number = 0;
    const auto read = std::from_chars(text.data(), text.data() + text.size(), number);
    if (read.ec != std::errc{} || read.ptr != text.data() + text.size() || number < low ||
        number > high) {
      return fail(name, "`" + text + "`: must be a whole number, " + std::to_string(low) + " to " +
                            std::to_string(high));
    }
    target = static_cast<T>(number);
  }

  void quantity(const char* name, int64_t divisor, uint64_t& target) {
    const std::string text = setting(name).text();
    if (text.empty()) return;
    auto milli = core::parse_quantity_milli(text);
    if (!milli || *milli <= 0)
      return fail(name, "`" + text + "` is not a positive quantity, such as 4, 500m or 16Gi");
    target = static_cast<uint64_t>(*milli / divisor);
  }
  // Bytes; "0" is 0.
  void size_or_none(const char* name, uint64_t& target) {
    if (setting(name).text() == "0")
      target = 0;
    else
      quantity(name, 1000, target);
  }

 private:
  const Settings& settings_;
  std::string problem_;
};

void read_resources(Reader& read, std::map<std::string, uint32_t>& resources) {
  for (const std::string& resource : read.setting("resource").values) {
    const size_t equals = resource.find('=');
    const std::string name = resource.substr(0, equals);
    const std::string count = equals == std::string::npos ? "" : resource.substr(equals + 1);
    const char* end = count.data() + count.size();
    uint32_t number = 0;
    const auto parsed = std::from_chars(count.data(), end, number);
    if (name.find('/') == std::string::npos || parsed.ec != std::errc{} || parsed.ptr != end ||
        number == 0 || number > kDevicesMax) {
      return read.fail("resource",
                       "`" + resource +
                           "`: must be NAME=COUNT, such as nvidia.com/gpu=4: a name with a `/` and "
                           "a whole number of at least 1");
    }
    resources[name] = number;
  }
}

void read_hosts(Reader& read, std::vector<std::string>& hosts) {
  for (const std::string& host : read.setting("api-host").values) {
    if (host.empty() || host.find_first_of(":/ ") != std::string::npos)
      return read.fail("api-host", "`" + host + "`: must be a name without a port");
    hosts.push_back(host);
  }
}

void read_groups(Reader& read, const char* name, bool any, std::vector<std::string>& groups) {
  for (const std::string& group : read.setting(name).values) {
    if (group.empty() || group.find_first_of(", :/") != std::string::npos || (group == "*" && !any))
      return read.fail(name, "`" + group + "`: must be the name of a Unix group");
    groups.push_back(group);
  }
}

void read_coordinators(Reader& read, std::vector<std::string>& addresses) {
  addresses = split_addresses(read.setting("coordinator").text());
  for (const std::string& address : addresses) {
    const bool socket = address.starts_with("unix:") && address.size() > 5;
    if (!socket && !is_host_port(address))
      return read.fail("coordinator", "`" + address +
                                          "` is not an address: write HOST:PORT, such as "
                                          "head:7444, or unix:PATH; separate several by commas");
  }
}

// A socket is served by default if its port is the default, too, so that clients that look for
// either find the same coordinator.
void read_socket(Reader& read, const char* name, const char* port, std::string& path,
                 bool& by_default) {
  const std::string text = read.setting(name).text();
  by_default = text.empty() && read.setting(port).layer == Layer::built_in;
  if (text != "none") path = text;
}

void read_users(Reader& read, const char* name, std::vector<uid_t>& users) {
  for (const std::string& user : read.setting(name).values) {
    const auto uid = find_user(user);
    if (!uid) return read.fail(name, "`" + user + "`: there is no such user on this machine");
    users.push_back(*uid);
  }
}

void read_labels(Reader& read, std::map<std::string, std::string>& labels) {
  for (const std::string& label : read.setting("label").values) {
    const size_t equals = label.find('=');
    if (equals == std::string::npos || equals == 0)
      return read.fail("label", "`" + label + "`: must be KEY=VALUE");
    labels[label.substr(0, equals)] = label.substr(equals + 1);
  }
}

// The program's path, or none; without a setting, where sendmail usually is.
void read_mail_program(Reader& read, std::string& program) {
  constexpr const char* kSendmail = "/usr/sbin/sendmail";
  read.text("mail-program", program);
  if (program.empty() && access(kSendmail, X_OK) == 0) program = kSendmail;
  if (program == "none") program.clear();
  if (!program.empty() && program[0] != '/')
    read.fail("mail-program", "`" + program + "`: must be an absolute path, such as " +
                                  std::string(kSendmail) + ", or none");
}

// A program that runs before or after each pod, and its time limit.
void read_hook(Reader& read, const char* name, const char* limit_name, std::string& program,
               Millis& limit_ms) {
  read.text(name, program);
  read.filled(name, "the path of a program; leave it out to run none");
  if (!program.empty() && program[0] != '/')
    read.fail(name, "`" + program + "`: must be an absolute path");
  read.span(limit_name, limit_ms);
  if (limit_ms < 1'000 || limit_ms > 86'400'000) read.fail(limit_name, "must be 1s to 24h");
}

// What no single setting says.
Status check_coordinator(const coordinator::Options& o, const Settings& settings) {
  if (o.data_dir.empty())
    return invalid("--data-dir D is required: the directory for the coordinator's state");
  if (o.backoff_max_ms < o.backoff_base_ms) {
    return invalid(settings["pod-failure-backoff-max"].place() +
                   ": must not be below pod-failure-backoff-base (" +
                   core::duration_text(o.backoff_base_ms) + ")");
  }
  if (o.ca_certificate.empty() != o.ca_key.empty())
    return invalid("--ca-cert and --ca-key belong together: give both or neither");
  if (o.munge_token_ms < core::kTokenLifeMin || o.munge_token_ms > core::kMungeTokenLifeMax)
    return invalid(settings["munge-token-life"].place() + ": must be 1m to 12h");
  if (o.node_certificate_ms < 1'000 || o.node_certificate_ms > Millis{3650} * 86'400'000)
    return invalid(settings["certificate-life"].place() + ": must be 1s to 3650d");
  if (o.node_grace_ms < 1'000)
    return invalid(settings["node-grace"].place() + ": must be at least 1s");
  return Nothing{};
}

// What makes a coordinator one of several; none without --store.
Result<std::optional<standby::Options>> standby_options(const Settings& settings) {
  Reader read(settings);
  standby::Options o;
  std::string store, password_file;
  read.text("store", store);
  read.text("peers", o.peers);
  read.text("join-token", o.join_token);
  read.toggle("new-store", o.new_store);
  read.span("replica-patience", o.timing.patience_ms);
  if (Status s = read.status(); !s) return s.error();
  if (store.empty() != o.peers.empty())
    return invalid("--store and --peers belong together: give both or neither");
  if (store.empty()) {
    for (const char* name : {"join-token", "new-store", "store-ca-cert", "store-cert", "store-key",
                             "store-user", "store-password-file"})
      if (settings[name].layer != Layer::built_in)
        return invalid(settings[name].place() +
                       ": needs --store: without it, a coordinator is alone");
    return std::optional<standby::Options>();
  }
  auto parsed = standby::parse_store(store);
  if (!parsed) return parsed.error();
  o.store = std::move(*parsed);
  read.text("store-ca-cert", o.store.ca_certificate);
  read.text("store-cert", o.store.certificate);
  read.text("store-key", o.store.key);
  read.text("store-user", o.store.user);
  read.text("store-password-file", password_file);
  if (o.store.certificate.empty() != o.store.key.empty())
    return invalid("--store-cert and --store-key belong together: give both or neither");
  if (o.store.user.empty() != password_file.empty())
    return invalid("--store-user and --store-password-file belong together: give both or neither");
  if (!password_file.empty()) {
    std::ifstream in(password_file);
    if (!std::getline(in, o.store.password))
      return invalid("--store-password-file " + password_file + ": it cannot be read, or is empty");
  }
  if (o.timing.patience_ms < 100 || o.timing.patience_ms > 60'000)
    return invalid(settings["replica-patience"].place() + ": must be 100ms to 60s");
  return std::optional(std::move(o));
}

}  // namespace

std::string daemon_file(Section section, const std::string& given) {
  const std::string usual = std::string("/etc/muster/") + name_of(section) + ".yaml";
  return given.empty() && access(usual.c_str(), F_OK) == 0 ? usual : given;
}

Result<CoordinatorOptions> coordinator_options(const Settings& settings) {
  CoordinatorOptions all;
  coordinator::Options& o = all.options;
  Reader read(settings);
  read.text("data-dir", o.data_dir);
  read.text("api", o.api);
  read.text("listen", o.listen);
  read_socket(read, "api-socket", "api", o.api_socket, all.default_api_socket);
  read_socket(read, "listen-socket", "listen", o.listen_socket, all.default_listen_socket);
  read_users(read, "agent-user", o.agent_users);
  read.text("api-tls", o.api_tls);
  read.toggle("munge", o.munge);
  read.text("munge-socket", o.munge_socket);
  read.span("munge-token-life", o.munge_token_ms);
  read.text("listen-tls", o.listen_tls);
  read.text("metrics-listen", o.metrics);
  read.text("ca-cert", o.ca_certificate);
  read.text("ca-key", o.ca_key);
  read.span("certificate-life", o.node_certificate_ms);
  if (const std::string text = settings.text("image-runtime"); !text.empty()) {
    auto runtime = core::ImageRuntime::parse(text);
    if (runtime)
      o.image_runtime = std::move(*runtime);
    else
      read.fail("image-runtime", runtime.error().message);
  }
  read_hosts(read, o.api_hosts);
  read_groups(read, "users", true, o.roles.users);
  read_groups(read, "operators", false, o.roles.operators);
  read_groups(read, "admins", false, o.roles.admins);
  read_groups(read, "metrics-readers", false, o.roles.metrics);
  if (const std::string when = settings.text("audit-journal"); when != "auto")
    o.audit_journal =
        when == "on" ? coordinator::AuditJournal::required : coordinator::AuditJournal::off;
  if (settings.text("placement") == "spread") o.placement = core::PlacementChoice::spread;
  read.toggle("private-jobs", o.access.private_jobs);
  read.whole("user-priority-max", 0, 1'000'000'000, o.access.user_priority_max);
  read.whole("user-jobs-max", 1, std::numeric_limits<int32_t>::max(), o.quotas.jobs_max);
  read.whole("user-pods-max", 1, std::numeric_limits<int32_t>::max(), o.quotas.pods_max);
  read.whole("user-requests-max", 1, 1'000'000, o.quotas.requests_max);
  read.text("log-level", all.log_level);
  if (settings.text("log-format") == "json") all.log_format = log::Format::json;
  read_mail_program(read, o.mail_program);
  read.span("pod-failure-backoff-base", o.backoff_base_ms);
  read.span("pod-failure-backoff-max", o.backoff_max_ms);
  read.span("node-grace", o.node_grace_ms);
  read.span("share-half-life", o.share_half_life_ms);
  read.whole("finished-jobs-max", 0, std::numeric_limits<int64_t>::max(), o.finished_jobs_max);
  read.span("history-age", o.history_age_ms);
  read.whole("history-max", 0, std::numeric_limits<int64_t>::max(), o.history_max);
  read.span("attempts-keep", o.attempts_keep_ms);
  read.whole("attempts-max", 0, std::numeric_limits<int64_t>::max(), o.attempts_max);
  read.toggle("require-limits", o.require_limits);
  read.toggle("insecure", o.insecure);
  if (const std::string text = settings.text("feature-gates"); !text.empty()) {
    auto gates = core::parse_gates(text, o.gates);
    if (gates) {
      o.gates = *gates;
    } else {
      read.fail("feature-gates", gates.error().message);
    }
  }
  if (Status s = read.status(); !s) return s.error();
  if (Status s = check_coordinator(o, settings); !s) return s.error();
  auto several = standby_options(settings);
  if (!several) return several.error();
  all.standby = std::move(*several);
  return all;
}

namespace {

// The end of the node: `text`, or that of the allocation of Slurm that this is part of. "none": it
// has no end.
Result<std::optional<Millis>> end_of(const std::string& text) {
  if (text == "none") return std::optional<Millis>();
  const Millis now = wall_now();
  const char* const slurm = std::getenv("SLURM_JOB_END_TIME");
  if (text.empty() && (slurm == nullptr || *slurm == '\0')) return std::optional<Millis>();
  Millis at = 0;
  if (text.empty()) {
    int64_t seconds = 0;
    const std::string_view all = slurm;
    const auto [end, error] = std::from_chars(all.data(), all.data() + all.size(), seconds);
    if (error != std::errc{} || end != all.data() + all.size() || seconds > 1ll << 40)
      return invalid("$SLURM_JOB_END_TIME is `" + std::string(all) +
                     "`: must be seconds since 1970, or give --until (none: the node has no end)");
    at = seconds * 1000;
  } else {
    auto when = parse_when(text, now);
    if (!when) return when.error();
    at = *when;
  }
  if (at <= now)
    return invalid((text.empty() ? "$SLURM_JOB_END_TIME: " : "") + when_text(at) +
                   " is in the past");
  return std::optional(at);
}

// "46000-46099", "any" or "none".
Result<std::optional<agent::PortRange>> peer_ports_of(const std::string& text) {
  if (text == "any") return std::optional(agent::PortRange{});
  if (text == "none") return std::optional<agent::PortRange>();
  const size_t hyphen = text.find('-');
  const auto first = whole_number(text.substr(0, hyphen));
  const auto last = hyphen == std::string::npos ? first : whole_number(text.substr(hyphen + 1));
  if (!first || !last || *first < 1 || *first > *last || *last > UINT16_MAX)
    return invalid("`" + text + "`: must be ports, such as 46000-46099, or any, or none");
  return std::optional(
      agent::PortRange{static_cast<uint16_t>(*first), static_cast<uint16_t>(*last)});
}

}  // namespace

Result<AgentOptions> agent_options(const Settings& settings) {
  AgentOptions all;
  agent::AgentOptions& o = all.options;
  Reader read(settings);
  read_coordinators(read, o.coordinators);
  if (settings["coordinator"].layer == Layer::built_in) o.sockets = socket_paths(kAgentsSocket);
  read.text("coordinator-user", o.coordinator_user);
  read.toggle("insecure", o.insecure);
  read.text("token-file", o.token_file);
  read.text("name", o.name);
  read.ip("node-ip", o.node_ip);
  if (auto ports = peer_ports_of(settings.text("peer-ports")); ports)
    o.peer_ports = *ports;
  else
    read.fail("peer-ports", ports.error().message);
  read.text("work-dir", o.work_dir);
  read.text("log-level", all.log_level);
  if (settings.text("log-format") == "json") all.log_format = log::Format::json;
  read.whole("slots", 1, std::numeric_limits<int32_t>::max(), o.slots);
  read.quantity("cpu", 1, o.cpu_millis);
  read.quantity("memory", 1000, o.memory_bytes);
  read.quantity("log-max", 1000, o.log_max_bytes);
  if (settings.text("evict-memory") == "0")
    o.evict_below_bytes.reset();
  else
    read.quantity("evict-memory", 1000, *o.evict_below_bytes);
  read.size_or_none("output-max", o.output_max_bytes);
  read.size_or_none("disk-reserve", o.disk_reserve_bytes);
  read.text("metrics-listen", o.metrics);
  read.text("health-check", o.health_check);
  read.filled("health-check", "the command to run; leave it out to check nothing");
  read.filled("until", "a time, or none");
  read.span("health-check-every", o.health_check_every_ms);
  if (auto until = end_of(settings.text("until")); until)
    o.until_ms = *until;
  else
    read.fail("until", until.error().message);
  read.text("scratch-dir", o.scratch_dir);
  read.toggle("private-tmp", o.private_tmp);
  read_hook(read, "prolog", "prolog-timeout", o.prolog, o.prolog_timeout_ms);
  read_hook(read, "epilog", "epilog-timeout", o.epilog, o.epilog_timeout_ms);
  o.binds_cpus = settings.text("cpu-binding") == "cores";
  read.span("log-keep", o.log_keep_ms);
  read.toggle("hollow", o.hollow);
  read.span("hollow-duration", o.hollow_duration_ms);
  read.whole("hollow-exit-code", 0, 255, o.hollow_exit_code);
  read_resources(read, o.resources);
  o.finds_gpus = settings.text("gpus") == "auto";
  read_labels(read, o.labels);
  if (o.hollow) o.labels[std::string(core::kHollowKey)] = "true";
  if (Status s = read.status(); !s) return s.error();
  if (o.work_dir.empty() && !o.hollow)
    return invalid("--work-dir D is required: a directory on a local disk, used only by this node");
  if (o.health_check_every_ms < 1'000)
    return invalid(settings["health-check-every"].place() + ": must be at least 1s");
  if (!o.scratch_dir.empty() && o.scratch_dir[0] != '/')
    return invalid(settings["scratch-dir"].place() + ": `" + o.scratch_dir +
                   "`: must be an absolute path");
  return all;
}

}  // namespace muster::cli
