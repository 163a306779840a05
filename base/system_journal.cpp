#include "base/system_journal.hpp"

#include "base/log.hpp"

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <sys/socket.h>
#include <sys/un.h>

namespace muster {
namespace {

sockaddr_un journal_address(const std::string& path) {
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  path.copy(address.sun_path, sizeof address.sun_path - 1);
  return address;
}

}  // namespace

std::string journal_bytes(const std::vector<JournalField>& fields) {
  std::string bytes;
  for (const JournalField& field : fields) {
    bytes += field.name;
    if (field.value.find('\n') == std::string::npos) {
      bytes += '=';
    } else {
      bytes += '\n';
      for (unsigned shift = 0; shift < 64; shift += 8)
        bytes += static_cast<char>(uint64_t{field.value.size()} >> shift & 0xff);
    }
    bytes += field.value;
    bytes += '\n';
  }
  return bytes;
}

Result<std::unique_ptr<SystemJournal>> SystemJournal::open(std::string identifier,
                                                           const std::string& path) {
  auto failed = [&path] {
    return Error{Errc::unavailable, path + ": " + std::strerror(errno), {}};
  };
  Fd socket(::socket(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!socket) return failed();
  // Only a probe: entries go to whatever is bound there at the time, since journald may restart.
  const Fd probe(::socket(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  const sockaddr_un address = journal_address(path);
  if (!probe ||
      connect(probe.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0)
    return failed();
  return std::unique_ptr<SystemJournal>(
      new SystemJournal(std::move(socket), std::move(identifier), path));
}

void SystemJournal::send(const std::vector<JournalField>& fields) {
  if (dropped_ > 0) {
    const std::string count = std::to_string(dropped_);
    if (take({{"MESSAGE", "{\"dropped\":" + count + "}"},
              {"PRIORITY", "4"},
              {"MUSTER_DROPPED", count}})) {
      log::warn("the journal takes entries again: it lacks {} of {}", count, identifier_);
      dropped_ = 0;
    }
  }
  if (dropped_ > 0 || !take(fields)) {
    if (dropped_++ == 0)
      log::warn("the journal does not take entries of {}: {}: {}", identifier_, path_,
                std::strerror(errno));
  }
}

bool SystemJournal::take(const std::vector<JournalField>& fields) {
  const std::string bytes =
      journal_bytes({{"SYSLOG_IDENTIFIER", identifier_}}) + journal_bytes(fields);
  const sockaddr_un address = journal_address(path_);
  return sendto(socket_.get(), bytes.data(), bytes.size(), MSG_DONTWAIT | MSG_NOSIGNAL,
                reinterpret_cast<const sockaddr*>(&address), sizeof address) >= 0;
}

}  // namespace muster
