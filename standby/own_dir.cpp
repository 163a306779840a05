#include "standby/own_dir.hpp"

#include "base/files/private_files.hpp"
#include "base/secret.hpp"
#include "base/text/json.hpp"

#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <fstream>
#include <sys/stat.h>
#include <utility>

namespace muster::standby {

bool OwnNote::learn(const core::standby::Configuration& configuration) {
  std::map<std::string, std::string> others;
  for (const auto& [name, place] : configuration.members)
    if (name != member && !place.peers.empty()) others[name] = place.peers;
  return std::exchange(peers, others) != others;
}

Result<std::optional<OwnNote>> read_note(const std::string& data_dir) {
  auto dir = open_private_dir(data_dir, "data-dir");
  if (!dir) return dir.error();
  const auto text = read_private_file(dir->get(), kNote);
  if (!text) {
    struct stat info = {};
    if (fstatat(dir->get(), kNote, &info, AT_SYMLINK_NOFOLLOW) != 0 && errno == ENOENT)
      return std::optional<OwnNote>();
    return Error{Errc::unavailable, data_dir + "/" + kNote + ": " + std::strerror(errno)};
  }
  const Json json = Json::parse(*text, nullptr, false);
  OwnNote note{member_text(json, "cluster"), member_text(json, "member"), {}, {}};
  if (const Json* seats = find_path(json, {"seats"}); seats != nullptr && seats->is_array())
    for (const Json& seat : *seats)
      if (seat.is_string()) note.seats.push_back(seat.get<std::string>());
  if (const Json* peers = find_path(json, {"peers"}); peers != nullptr && peers->is_object())
    for (const auto& [name, address] : peers->items())
      if (address.is_string()) note.peers[name] = address.get<std::string>();
  if (note.member.empty())
    return invalid(data_dir + "/" + kNote +
                   " is damaged: remove it, and this coordinator joins as a new one");
  return std::optional(std::move(note));
}

Status write_note(const std::string& data_dir, const OwnNote& note) {
  auto dir = open_private_dir(data_dir, "data-dir");
  if (!dir) return dir.error();
  const std::string text = dumped(OrderedJson{{"cluster", note.cluster},
                                              {"member", note.member},
                                              {"seats", note.seats},
                                              {"peers", note.peers}});
  return replace_private_file(dir->get(), kNote, text + "\n");
}

std::string new_seat() {
  return random_hex(8);
}

std::string process_of(const std::string& data_dir) {
  std::string boot;
  std::ifstream("/proc/sys/kernel/random/boot_id") >> boot;
  struct stat info = {};
  if (boot.empty() || stat(data_dir.c_str(), &info) != 0) return "";
  return boot + ":" + std::to_string(info.st_dev) + ":" + std::to_string(info.st_ino);
}

}  // namespace muster::standby
