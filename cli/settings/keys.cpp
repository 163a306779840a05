#include "cli/settings/keys.hpp"

#include <cctype>

namespace muster::cli {
namespace {

using Form = Key::Form;

const std::vector<std::string> kLogLevels = {"trace", "debug", "info", "warn", "error", "off"};

const std::vector<Key> kClient = {
    {"api",
     Form::text,
     "ADDR:PORT",
     "127.0.0.1:7117",
     "Address of the coordinator, also https://HOST:PORT or unix:PATH; a bare port means localhost",
     {}},
    {"token-file",
     Form::text,
     "F",
     "",
     "Token for a coordinator on another machine (default: ~/.config/muster/token)",
     {}},
    {"ca-file",
     Form::text,
     "F",
     "/etc/muster/ca.pem",
     "Certificate of the cluster's authority, to log in by munge where there is no token",
     {}},
    {"munge-socket", Form::text, "PATH", "", "Socket of munge's daemon (default: libmunge's)", {}},
    {"namespace", Form::text, "NS", "default", "Namespace", {}},
    {"output",
     Form::text,
     "FORM",
     "table",
     "Output format",
     {"table", "wide", "name", "json", "yaml"}},
    {"request-timeout", Form::text, "T", "30s", "Time limit for each request", {}},
    {"connect-timeout",
     Form::text,
     "T",
     "5s",
     "Time to wait for a coordinator that does not serve yet; 0s: do not wait",
     {}},
    {"color",
     Form::text,
     "WHEN",
     "auto",
     "When to use color; auto: on a terminal, unless NO_COLOR is set",
     {"auto", "always", "never"}},
};

const std::vector<Key> kCoordinator = {
    {"data-dir",
     Form::text,
     "D",
     "",
     "Directory of the coordinator's state; created if missing",
     {}},
    {"api",
     Form::text,
     "ADDR:PORT",
     "127.0.0.1:7117",
     "Address to serve the HTTP API on; port 0 picks a free port",
     {}},
    {"api-socket", Form::text, "PATH", "", "Additional Unix socket to serve the HTTP API on", {}},
    {"users",
     Form::list,
     "GROUP",
     "",
     "Unix group whose members may run jobs of their own; * means everyone; repeatable",
     {}},
    {"operators",
     Form::list,
     "GROUP",
     "",
     "Unix group whose members manage nodes and all jobs; repeatable",
     {}},
    {"admins",
     Form::list,
     "GROUP",
     "",
     "Unix group whose members may do everything; repeatable",
     {}},
    {"metrics-readers",
     Form::list,
     "GROUP",
     "",
     "Unix group whose members may read /metrics and nothing else; repeatable",
     {}},
    {"metrics-listen",
     Form::text,
     "ADDR:PORT",
     "",
     "Address to serve /metrics and /healthz on, for anyone, without TLS",
     {}},
    {"audit-journal",
     Form::text,
     "WHEN",
     "auto",
     "Whether audited requests go to the system's journal, too; auto: if it runs",
     {"auto", "on", "off"}},
    {"private-jobs",
     Form::toggle,
     "",
     "false",
     "Hide other users' jobs, including their names and counts",
     {}},
    {"user-jobs-max",
     Form::text,
     "N",
     "",
     "Maximum unfinished jobs per user (default: no limit)",
     {}},
    {"user-pods-max",
     Form::text,
     "N",
     "",
     "Maximum pods per user on nodes at a time; others wait (default: no limit)",
     {}},
    {"user-requests-max",
     Form::text,
     "N",
     "",
     "Maximum requests per second and user (default: no limit)",
     {}},
    {"listen",
     Form::text,
     "ADDR:PORT",
     "127.0.0.1:7118",
     "Address to serve agents on; port 0 picks a free port",
     {}},
    {"api-tls",
     Form::text,
     "ADDR:PORT",
     "",
     "Address to serve the API on over HTTPS, for clients with a token",
     {}},
    {"munge",
     Form::toggle,
     "",
     "false",
     "Log in users of other machines who have a munge credential; needs --api-tls and --users",
     {}},
    {"munge-socket", Form::text, "PATH", "", "Socket of munge's daemon (default: libmunge's)", {}},
    {"munge-token-life",
     Form::text,
     "T",
     "1h",
     "How long a token is valid that a munge credential was exchanged for",
     {}},
    {"listen-tls",
     Form::text,
     "ADDR:PORT",
     "",
     "Address to serve agents on other machines on, over mutual TLS",
     {}},
    {"ca-cert",
     Form::text,
     "F",
     "",
     "Certificate of the site's authority, PEM (default: the coordinator makes one)",
     {}},
    {"ca-key", Form::text, "F", "", "Private key of the site's authority, PEM", {}},
    {"certificate-life",
     Form::text,
     "T",
     "30d",
     "Validity of node certificates; agents renew them before they expire",
     {}},
    {"api-host",
     Form::list,
     "NAME",
     "",
     "Host name that clients may use for the API; repeatable",
     {}},
    {"pod-failure-backoff-base",
     Form::text,
     "T",
     "10s",
     "Delay before the first retry of an index; doubles with each failure",
     {}},
    {"pod-failure-backoff-max", Form::text, "T", "10m", "Maximum delay before a retry", {}},
    {"node-grace",
     Form::text,
     "T",
     "40s",
     "Time without a heartbeat after which a node is lost",
     {}},
    {"feature-gates",
     Form::text,
     "NAME=false,...",
     "",
     "Features to turn off: JobBackoffLimitPerIndex, JobSuccessPolicy, ElasticIndexedJob, "
     "JobPodFailurePolicy, JobPodReplacementPolicy, JobManagedBy (default: all on)",
     {}},
    {"finished-jobs-max",
     Form::text,
     "N",
     "",
     "Number of finished jobs to keep, deleting the oldest (default: all)",
     {}},
    {"attempts-keep", Form::text, "T", "30d", "Time to keep the history of attempts", {}},
    {"attempts-max",
     Form::text,
     "N",
     "1000000",
     "Number of attempts to keep in the history, deleting the oldest",
     {}},
    {"log-level", Form::text, "LEVEL", "info", "Log level", kLogLevels},
    {"require-limits",
     Form::toggle,
     "",
     "false",
     "Place pods with resource limits only on nodes that enforce them",
     {}},
    {"insecure",
     Form::toggle,
     "",
     "false",
     "Allow addresses other than loopback, and other users",
     {}},
};

const std::vector<Key> kAgent = {
    {"coordinator",
     Form::text,
     "ADDR",
     "127.0.0.1:7118",
     "Address of the coordinator for agents, ADDR:PORT or unix:PATH",
     {}},
    {"token-file",
     Form::text,
     "F",
     "",
     "Join token of this node, from `muster token create --node`",
     {}},
    {"name", Form::text, "NODE", "", "Name of this node (default: the host name)", {}},
    {"slots",
     Form::text,
     "N",
     "",
     "Maximum pods running at once (default: the number of CPUs)",
     {}},
    {"cpu", Form::text, "Q", "", "CPU that pods may request, such as 8 or 500m (default: all)", {}},
    {"memory",
     Form::text,
     "Q",
     "",
     "Memory that pods may request, such as 16Gi (default: all)",
     {}},
    {"resource",
     Form::list,
     "NAME=COUNT",
     "",
     "Devices that pods may request, such as nvidia.com/gpu=4; repeatable",
     {}},
    {"label", Form::list, "k=v", "", "Label of this node; repeatable", {}},
    {"node-ip",
     Form::text,
     "IP",
     "",
     "Address at which other nodes reach this one, for MPI jobs (default: the one it connects "
     "from)",
     {}},
    {"work-dir",
     Form::text,
     "D",
     "",
     "Directory on a local disk for this node's state and logs",
     {}},
    {"log-keep", Form::text, "T", "7d", "Time to keep the logs of finished pods", {}},
    {"log-max",
     Form::text,
     "Q",
     "10Gi",
     "Maximum size of all logs of finished pods; the oldest are removed",
     {}},
    {"evict-memory",
     Form::text,
     "Q",
     "100Mi",
     "Available memory below which the largest pod is evicted; 0 turns eviction off",
     {}},
    {"hollow",
     Form::toggle,
     "",
     "false",
     "Simulate pods without starting processes; jobs must tolerate muster.dev/hollow",
     {}},
    {"hollow-duration", Form::text, "T", "0s", "Running time of simulated pods", {}},
    {"hollow-exit-code", Form::text, "N", "0", "Exit code of simulated pods", {}},
    {"log-level", Form::text, "LEVEL", "info", "Log level", kLogLevels},
};

}  // namespace

const std::vector<Key>& keys_of(Section section) {
  switch (section) {
    case Section::client:
      return kClient;
    case Section::coordinator:
      return kCoordinator;
    case Section::agent:
      return kAgent;
  }
  return kClient;
}

const char* name_of(Section section) {
  switch (section) {
    case Section::client:
      return "";
    case Section::coordinator:
      return "coordinator";
    case Section::agent:
      return "agent";
  }
  return "";
}

const Key* find_key(Section section, std::string_view name) {
  for (const Key& key : keys_of(section)) {
    if (key.name == name) return &key;
  }
  return nullptr;
}

std::string full_name(Section section, const Key& key) {
  const std::string lead = name_of(section);
  return lead.empty() ? key.name : lead + "." + key.name;
}

std::string variable_of(Section section, const Key& key) {
  std::string variable = "MUSTER_";
  for (const char c : full_name(section, key)) {
    variable +=
        c == '-' || c == '.' ? '_' : static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  }
  return variable;
}

}  // namespace muster::cli
