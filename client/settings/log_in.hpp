// LogIn: how a client and its coordinator identify each other. On this machine the kernel names the
// users of both ends. To another machine, the client has the token in a file or, if there is none,
// munge, and the coordinator its certificate.
#pragma once

#include <string>

namespace muster::cli {

struct LogIn {
  std::string coordinator_user;  // who may serve us on this machine besides root and ourselves
  std::string token_file;
  bool token_named = false;  // by a setting, so the file must exist
  // For munge:
  std::string ca_file;       // certificate of the cluster's authority, PEM
  std::string munge_socket;  // of munge's daemon; empty: libmunge's default
  std::string cache_folder;  // where tokens are kept between commands
};

}  // namespace muster::cli
