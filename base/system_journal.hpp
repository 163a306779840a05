// SystemJournal: entries for systemd-journald, by its native protocol
// (https://systemd.io/JOURNAL_NATIVE_PROTOCOL/).
//
//   entry := field*                            one datagram
//   field := NAME "=" value "\n"               if the value has no newline
//          | NAME "\n" length:u64le value "\n"
//
// The second form keeps a value from injecting fields. Sending never blocks: an entry that the
// journal does not accept at once is dropped, and the next accepted entry is preceded by one that
// says how many were dropped.
#pragma once

#include "base/fd.hpp"
#include "base/result.hpp"

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace muster {

constexpr const char* kJournalSocket = "/run/systemd/journal/socket";

struct JournalField {
  std::string name;  // capital letters, digits and underscores; no leading underscore
  std::string value;
};

std::string journal_bytes(const std::vector<JournalField>& fields);

class SystemJournal {
 public:
  // `identifier`: the SYSLOG_IDENTIFIER of all entries. Fails if nothing listens at `path`.
  static Result<std::unique_ptr<SystemJournal>> open(std::string identifier,
                                                     const std::string& path = kJournalSocket);

  // `fields`: besides the identifier; at least a MESSAGE. Not thread-safe.
  void send(const std::vector<JournalField>& fields);
  size_t dropped() const { return dropped_; }  // and not yet reported

 private:
  SystemJournal(Fd socket, std::string identifier, std::string path)
      : socket_(std::move(socket)), identifier_(std::move(identifier)), path_(std::move(path)) {}
  bool take(const std::vector<JournalField>& fields);

  const Fd socket_;
  const std::string identifier_, path_;
  size_t dropped_ = 0;
};

}  // namespace muster
