#include "keeper/files/spool_lengths.hpp"

#include "base/bytes.hpp"

#include <cstdio>
#include <fcntl.h>
#include <string_view>
#include <unistd.h>

namespace muster::keeper {
namespace {

constexpr size_t kSlots = 1024, kSlotBytes = 64;
constexpr const char* kFile = "spool.lengths";

off_t place_of(uint64_t segment) {
  return static_cast<off_t>(segment % kSlots * kSlotBytes);
}

std::string text_of(const std::string& what, uint64_t segment) {
  char name[32];
  std::snprintf(name, sizeof name, "%016llx.seg", static_cast<unsigned long long>(segment));
  return std::string("spool: ") + name + what;
}

}  // namespace

SpoolLengths::SpoolLengths(const std::string& boot, uint64_t keeper)
    : boot_(fnv1a(boot)), keeper_(keeper) {}

void SpoolLengths::open(int dir_fd) {
  file_ = Fd(openat(dir_fd, kFile, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600));
}

SpoolLengths::Known SpoolLengths::known() const {
  Known known;
  std::string bytes(kSlots * kSlotBytes, '\0');
  const ssize_t size = pread(file_.get(), bytes.data(), bytes.size(), 0);
  for (size_t at = 0; size > 0 && at + kSlotBytes <= static_cast<size_t>(size); at += kSlotBytes) {
    Reader in(std::string_view(bytes).substr(at, kSlotBytes));
    const auto crc = in.num<uint32_t>();
    const std::string_view body = in.rest();
    in.num<uint32_t>();
    const auto segment = in.num<uint64_t>(), length = in.num<uint64_t>();
    in.num<uint64_t>();
    const auto boot = in.num<uint64_t>();
    if (segment != 0 && crc == crc32(body) && boot == boot_) known[segment] = length;
  }
  return known;
}

void SpoolLengths::note(uint64_t segment, uint64_t length) {
  std::string body, slot;
  Writer(body).num(uint32_t{0}).num(segment).num(length).num(keeper_).num(boot_);
  body.resize(kSlotBytes - sizeof(uint32_t));
  Writer(slot).num(crc32(body)).written(body);
  // If it fails, the last note stands, which does not claim too much either.
  if (pwrite(file_.get(), slot.data(), slot.size(), place_of(segment)) < 0) return;
}

void SpoolLengths::forget(uint64_t segment) {
  const std::string nothing(kSlotBytes, '\0');
  if (pwrite(file_.get(), nothing.data(), nothing.size(), place_of(segment)) < 0) return;
}

std::optional<std::string> contradiction(const SpoolLengths::Known& known,
                                         const SpoolLengths::Known& found) {
  if (known.empty() || (!found.empty() && found.rbegin()->first > known.rbegin()->first))
    return std::nullopt;  // none, or a keeper that does not write them came later
  for (const auto& [segment, length] : known) {
    const auto it = found.find(segment);
    if (it == found.end()) return text_of(" is missing", segment);
    if (it->second < length)
      return text_of(" ends at byte " + std::to_string(it->second) + ", but had " +
                         std::to_string(length) + " bytes",
                     segment);
  }
  return std::nullopt;
}

}  // namespace muster::keeper
