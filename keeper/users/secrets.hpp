// Secrets: files of a pod's owner whose contents become variables of a process (secretKeyRef).
//
// Orders and the spool contain only their paths. The child reads them between clone and exec, after
// it has become the owner, so the kernel decides which files it may read. Where it shares no memory
// with us, neither we nor anything that we write ever holds them.
#pragma once

#include "base/exec_exit.hpp"
#include "core/node/command.hpp"
#include "core/node/values.hpp"

#include <cstddef>
#include <string>
#include <sys/types.h>
#include <vector>

namespace muster::keeper {

class Secrets {
 public:
  explicit Secrets(const std::vector<core::node::SecretFile>& files);
  Secrets(const Secrets&) = delete;
  Secrets& operator=(const Secrets&) = delete;
  ~Secrets();  // wipes what was read

  bool empty() const { return all_.empty(); }
  // Adds the variables, still without values.
  void add_to(std::vector<char*>& envp);

  // In the child: system calls only. Reads the values of the variables that add_to() added to
  // `envp`, which ends with a null. Removes optional variables whose files are missing. Each file
  // must be a regular file that belongs to `owner` and that nobody else can access. False: one
  // could not be read; failure() says why.
  bool read(uid_t owner, char** envp) noexcept;

  // After read() has failed, in the child or, with shared memory, in its parent: "variable
  // PASSWORD: secret /home/ada/.config/muster/secrets/db/password: No such file or directory".
  // Returns the length, less than `size`.
  size_t failure(char* text, size_t size) const noexcept;
  // Of a process that cannot start for this reason: another node may have the file.
  int exit_code() const noexcept { return unread_ ? core::kExitNotHere : kExitCannotStart; }

 private:
  struct One {
    std::string name, path;
    bool optional = false;
    std::vector<char> variable;  // "NAME=", then room for the longest value
  };
  // Null, or what is wrong with it. `missing`: there is no such file.
  const char* read_one(One& one, uid_t owner, bool& missing) noexcept;

  std::vector<One> all_;
  size_t first_ = 0;  // its place in the environment
  size_t failed_ = 0;
  bool unread_ = false;  // the file is missing, or the file system fails
  const char* why_ = nullptr;
};

}  // namespace muster::keeper
