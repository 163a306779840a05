// LogIn: how a client identifies itself to a coordinator on another machine: with the token in a
// file or, if there is none, through munge.
#pragma once

#include <string>

namespace muster::cli {

struct LogIn {
  std::string token_file;
  bool token_named = false;  // by a setting, so the file must exist
  // For munge:
  std::string ca_file;       // certificate of the cluster's authority, PEM
  std::string munge_socket;  // of munge's daemon; empty: libmunge's default
  std::string cache_folder;  // where tokens are kept between commands
};

}  // namespace muster::cli
