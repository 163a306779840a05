// Owners: who owns what at this moment, and what follows from it, by the rules of Kubernetes'
// garbage collector (attemptToDeleteItem).
//
// An owner is solid, is waiting (being deleted in the foreground, until its dependents are gone),
// or is gone. An object with a solid owner stays, and loses its references to the others. Without
// one, it is deleted: in the foreground, if an owner waits for it and it has dependents itself. An
// owner that waits goes when no dependent with blockOwnerDeletion is left.
//
// A copy, made for one look at the View: judge() and blocked() compare it with the View as it is.
#pragma once

#include "api/view/model/view.hpp"

#include <string>
#include <unordered_map>
#include <vector>

namespace muster::api {

// A job or a stored object that names owners.
struct Dependent {
  JobId job = 0;  // 0: a stored object
  core::KeptPtr kept;
  std::string ns, name, uid;
  std::vector<core::OwnerRef> owners;
  bool leaving = false;   // its deletion has begun
  bool waiting = false;   // in the foreground
  bool has_pods = false;  // of a job
};

enum class Standing { solid, waiting, gone };

struct Verdict {
  enum class What { stays, released, deleted, deleted_in_foreground };
  What what = What::stays;
  std::vector<std::string> lost;  // released: the uids of the owners that it loses
};

class Owners {
 public:
  explicit Owners(const View& view);
  const std::vector<Dependent>& dependents() const { return dependents_; }
  Verdict judge(const Dependent& one) const;
  // Whether an owner that is being deleted in the foreground still has to wait.
  bool blocked(const std::string& uid) const;
  bool has_dependents(const std::string& uid) const { return of_.contains(uid); }

 private:
  Standing standing(const core::OwnerRef& owner, const std::string& ns) const;
  void add(Dependent one);
  // Whether this owner is, by others that wait, a dependent of its own dependent: a circle, which
  // must not wait for itself.
  bool depends_on(const std::string& uid, const Dependent& one) const;

  const View& view_;
  std::vector<Dependent> dependents_;
  std::unordered_map<std::string, std::vector<size_t>> of_;  // dependents by their owner's uid
};

// Whether the job is shown and being deleted in the foreground.
bool in_foreground(const core::Job& job);

}  // namespace muster::api
