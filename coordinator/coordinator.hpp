// Coordinator: wires the actors, the journal, the agents' port and the API into one running whole.
//
// Threads: RPC (KJ, agents), API (KJ, HTTP), CAF workers (decide), journal (detached actor, the
// only writer of RocksDB).
#pragma once

#include "base/clock.hpp"
#include "base/result.hpp"
#include "core/spec/gates.hpp"

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace muster::coordinator {

struct Options {
  std::string data_dir;
  std::string api = "127.0.0.1:7117";     // HTTP; port 0 picks a free one
  std::vector<std::string> api_hosts;     // more names by which clients may call it
  std::string listen = "127.0.0.1:7118";  // agents: HOST:PORT or unix:PATH
  Millis backoff_base_ms = 10'000;
  Millis backoff_max_ms = 600'000;
  Millis node_grace_ms = 40'000;
  core::Gates gates{};
  uint64_t finished_jobs_max = UINT64_MAX;            // that are kept; the oldest go first
  Millis attempts_keep_ms = Millis{30} * 86'400'000;  // history of attempts: so long
  uint64_t attempts_max = 1'000'000;                  // and so many
  bool require_limits = false;  // keep pods with limits off nodes that do not enforce them
  bool insecure = false;        // serve other addresses and users than our own
  // At a start, wait for the nodes on record before anything is written or shown: what they were
  // told may prove that the data-dir is older than what was acknowledged.
  bool wait_for_nodes = true;
};

class Coordinator {
 public:
  // Opens the data-dir (made with mode 0700 when missing), folds all jobs, waits for the nodes on
  // record (or until those that are alive would have come), serves, writes endpoints.json. Until
  // then the journal is as it was. Refusals: the data-dir is in use, has an unknown format, lost
  // acknowledged data; an address is taken or not loopback. A node that was told of what the
  // data-dir does not contain ends the process, whenever it comes.
  static Result<std::unique_ptr<Coordinator>> start(Options options);
  virtual ~Coordinator() = default;
  virtual std::string api_address() const = 0;  // "127.0.0.1:41233"
  virtual std::string listen_address() const = 0;
  // Stops serving, finishes what is being written, closes the journal. Pods are not touched.
  virtual void stop() = 0;
};

}  // namespace muster::coordinator
