// Secrets: files of a pod's owner whose contents become variables of a process (secretKeyRef).
//
// Orders and the spool have only their paths. The child reads them between clone and exec, when it
// has become the owner, so whose file it may read is for the kernel to say; where it shares no
// memory with us, neither we nor anything that we write has ever held them.
#pragma once

#include "core/node/command.hpp"

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
  // Adds the variables, which have no values yet.
  void add_to(std::vector<char*>& envp);

  // In the child: system calls only. Reads the values of the variables in `envp`, which add_to()
  // has added to and which ends with a null. Removes an optional one whose file is missing. Each
  // file must be a regular one of `owner` that nobody else can read. False: it could not be read;
  // failure() says why.
  bool read(uid_t owner, char** envp) noexcept;

  // After read() has failed, in the child or, with shared memory, in its parent: "variable
  // PASSWORD: /home/ada/.config/muster/secrets/db/password: No such file or directory". Returns the
  // length, less than `size`.
  size_t failure(char* text, size_t size) const noexcept;

 private:
  struct One {
    std::string name, path;
    bool optional = false;
    std::vector<char> variable;  // "NAME=", then room for the longest value
  };
  // Null, or what is wrong with it. `length`: of the value.
  const char* read_one(One& one, uid_t owner, bool& missing) noexcept;

  std::vector<One> all_;
  size_t first_ = 0;  // its place in the environment
  size_t failed_ = 0;
  const char* why_ = nullptr;
};

}  // namespace muster::keeper
