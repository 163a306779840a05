#include "coordinator/listen_error.hpp"

namespace muster::coordinator {

Error listen_error(const std::string& flag, const std::string& address, const kj::Exception& e) {
  struct Known {
    const char* said;
    const char* meant;
  };
  static constexpr Known kKnown[] = {
      {"Address already in use",
       "address already in use; choose another port (0 picks a free one) or stop the other "
       "process"},
      {"Permission denied", "permission denied; ports below 1024 are for root"},
      {"Cannot assign requested address", "this machine has no such address"}};
  const std::string said = e.getDescription().cStr();
  std::string meant = said;
  for (const Known& known : kKnown) {
    if (said.find(known.said) != std::string::npos) meant = known.meant;
  }
  return {Errc::unavailable, flag + " " + address + ": " + meant, {}};
}

}  // namespace muster::coordinator
