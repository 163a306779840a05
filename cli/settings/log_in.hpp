// LogIn: how a client identifies itself to a coordinator of another machine: by the token in a file
// or, where there is none, by munge.
#pragma once

#include <string>

namespace muster::cli {

struct LogIn {
  std::string token_file;
  bool token_named = false;  // by a setting: then it has to be there
  // By munge:
  std::string ca_file;       // certificate of the cluster's authority, PEM
  std::string munge_socket;  // of munge's daemon; empty: where libmunge expects it
  std::string cache_folder;  // where tokens are kept between commands
};

}  // namespace muster::cli
