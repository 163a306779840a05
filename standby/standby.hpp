// Standby: makes a coordinator one of several. It follows the one that leads, and says when this
// one has the lead: then a coordinator is started with it (coordinator/lead.hpp), until it is
// handed over or the process ends.
//
//   peers' thread   FollowingRole or LeadingRole, the store, the other coordinators, the doorway
//   main thread     starts and stops the coordinator as the roles change
//
// Everything that may not go on ends the process, with the reason in the log: the next start joins
// again.
#pragma once

#include "coordinator/coordinator.hpp"
#include "core/standby/timing.hpp"
#include "standby/store/etcd_options.hpp"

#include <functional>
#include <memory>
#include <string>

namespace muster::standby {

struct Options {
  EtcdOptions store;
  std::string peers;       // HOST:PORT to serve the other coordinators on
  std::string join_token;  // file; for an empty data-dir
  bool new_store = false;  // writes the configuration anew into a store that was wiped
  core::standby::Timing timing;
};

class Standby {
 public:
  // `serves`: what the coordinator will serve. `wake` is called, on another thread, whenever lead()
  // or hands_over() changes.
  static Result<std::unique_ptr<Standby>> start(Options options, const coordinator::Options& serves,
                                                std::function<void()> wake);
  virtual ~Standby() = default;

  virtual std::shared_ptr<coordinator::Lead> lead() const = 0;  // null: it follows
  virtual bool hands_over() const = 0;  // stop the coordinator, then hand_over()
  // Gives up the lead, and waits until it is done. Another coordinator may lead from then on, so
  // call it only once nothing is answered or committed here any more.
  virtual void hand_over() = 0;
  // Follows again, after hand_over(), once nobody has the journal open any more.
  virtual void follow_again() = 0;
};

// Why a coordinator without --store may not start on this data-dir; nullopt: it may.
std::optional<Error> refuses_alone(const std::string& data_dir);

}  // namespace muster::standby
