// The authority of a cluster: the site's own, from files, or the one in the journal.
#pragma once

#include "base/result.hpp"
#include "trust/tls/certificates.hpp"

#include <optional>
#include <string>

namespace muster::coordinator {

// Files with PEM texts; both empty: the journal's authority.
struct AuthorityFiles {
  std::string certificate, key;
};

// `stored`: the row of the journal (storage::authority_row); empty: none, so nothing is opened
// unless there are files. `invalid` names the flag or the row.
Result<std::optional<tls::Authority>> open_authority(const AuthorityFiles& files,
                                                     const std::string& stored);

}  // namespace muster::coordinator
