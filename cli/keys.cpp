#include "cli/keys.hpp"

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
     "the coordinator; a port alone is one of this machine",
     {}},
    {"namespace", Form::text, "NS", "default", "namespace", {}},
    {"output",
     Form::text,
     "FORM",
     "table",
     "how `get` shows objects",
     {"table", "wide", "name", "json", "yaml"}},
    {"request-timeout",
     Form::text,
     "T",
     "30s",
     "how long an answer of the coordinator may take",
     {}},
    {"color",
     Form::text,
     "WHEN",
     "auto",
     "colours: auto is on a terminal without NO_COLOR",
     {"auto", "always", "never"}},
};

const std::vector<Key> kCoordinator = {
    {"data-dir", Form::text, "D", "", "where the state lives (made when missing)", {}},
    {"api",
     Form::text,
     "ADDR:PORT",
     "127.0.0.1:7117",
     "serve HTTP here; port 0 picks a free one",
     {}},
    {"listen",
     Form::text,
     "ADDR:PORT",
     "127.0.0.1:7118",
     "serve agents here; port 0 picks a free one",
     {}},
    {"api-host",
     Form::list,
     "NAME",
     "",
     "a name that clients may call the API by, may be repeated",
     {}},
    {"pod-failure-backoff-base",
     Form::text,
     "T",
     "10s",
     "wait this long after an index's first failure, doubling",
     {}},
    {"pod-failure-backoff-max", Form::text, "T", "10m", "and this long at most", {}},
    {"node-grace", Form::text, "T", "40s", "an agent silent this long is lost", {}},
    {"feature-gates",
     Form::text,
     "NAME=false,...",
     "",
     "turn features off (all are on): JobBackoffLimitPerIndex, JobSuccessPolicy, "
     "ElasticIndexedJob, JobPodFailurePolicy, JobPodReplacementPolicy, JobManagedBy",
     {}},
    {"finished-jobs-max",
     Form::text,
     "N",
     "",
     "keep so many finished jobs; beyond, the oldest are deleted (default: all)",
     {}},
    {"attempts-keep", Form::text, "T", "30d", "keep the history of attempts this long", {}},
    {"attempts-max", Form::text, "N", "1000000", "and of so many attempts, the oldest go", {}},
    {"log-level", Form::text, "LEVEL", "info", "how much is logged", kLogLevels},
    {"require-limits",
     Form::toggle,
     "",
     "false",
     "place pods with limits only on nodes that enforce them",
     {}},
    {"insecure",
     Form::toggle,
     "",
     "false",
     "serve other addresses than loopback, and other users",
     {}},
};

const std::vector<Key> kAgent = {
    {"coordinator",
     Form::text,
     "ADDR",
     "127.0.0.1:7118",
     "its address for agents, ADDR:PORT or unix:PATH",
     {}},
    {"name", Form::text, "NODE", "", "of this node (default: the host's)", {}},
    {"slots", Form::text, "N", "", "pods at a time (default: the CPUs)", {}},
    {"cpu", Form::text, "Q", "", "cpu that pods may request, such as 8 or 500m (default: all)", {}},
    {"memory",
     Form::text,
     "Q",
     "",
     "memory that pods may request, such as 16Gi (default: all)",
     {}},
    {"resource",
     Form::list,
     "NAME=COUNT",
     "",
     "devices that pods may request by name, such as nvidia.com/gpu=4, may be repeated",
     {}},
    {"label", Form::list, "k=v", "", "a label of this node, may be repeated", {}},
    {"work-dir", Form::text, "D", "", "a directory on a local disk, for this node alone", {}},
    {"log-keep", Form::text, "T", "7d", "remove pods' logs after this long", {}},
    {"log-max", Form::text, "Q", "10Gi", "keep at most so many bytes of them, oldest first", {}},
    {"evict-memory",
     Form::text,
     "Q",
     "100Mi",
     "while less memory is available, end the pod that uses most; 0: never",
     {}},
    {"hollow",
     Form::toggle,
     "",
     "false",
     "start no process: each pod just ends (for scale tests); jobs must tolerate muster.dev/hollow",
     {}},
    {"hollow-duration", Form::text, "T", "0s", "after this long", {}},
    {"hollow-exit-code", Form::text, "N", "0", "with this exit code", {}},
    {"log-level", Form::text, "LEVEL", "info", "how much is logged", kLogLevels},
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
