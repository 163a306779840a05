#include "keeper/files/spool.hpp"

#include "keeper/kernel/proc.hpp"
#include "keeper/kernel/tell.hpp"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <utility>

namespace muster::keeper {
namespace {

constexpr size_t kEntryHead = 16;     // more than what each entry takes besides its contents
constexpr size_t kHeaderRoom = 1024;  // more than a segment's header takes
constexpr size_t kErrorMax = 400;
constexpr size_t kEndRoom = 640;  // a start and an end with the longest error
constexpr auto kSyncGather = std::chrono::milliseconds(300);
constexpr uint64_t kSyncMaxNs = 5'000'000'000;  // a longer sync counts as hung

std::string segment_name(uint64_t number) {
  char name[32];
  std::snprintf(name, sizeof name, "%016" PRIx64 ".seg", number);
  return name;
}

}  // namespace

Spool::File::~File() {
  close(fd);
}

Spool::Spool(std::string boot, uint64_t keeper, size_t segment_bytes)
    : boot_(std::move(boot)),
      keeper_(keeper),
      segment_bytes_(segment_bytes),
      lengths_(boot_, keeper_) {
  syncer_ = std::thread([this] { run_sync(); });
}

Spool::~Spool() {
  {
    std::lock_guard lock(mutex_);
    done_ = true;
  }
  dirty_or_done_.notify_all();
  syncer_.join();
  if (dir_ >= 0) close(dir_);
}

Spool::Found Spool::open(int dir_fd, std::string cluster) {
  Found found;
  cluster_ = std::move(cluster);
  auto failed = [&found](const std::string& why) {
    found.opened = Opened::failed;
    found.why = "spool: " + why + ": " + std::strerror(errno);
    return found;
  };
  const bool made = mkdirat(dir_fd, "spool", 0700) == 0;
  if (!made && errno != EEXIST) return failed("mkdir");
  if (made && fsync(dir_fd) < 0) return failed("sync");  // else its segments could vanish with it
  dir_ = openat(dir_fd, "spool", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  int list_fd = dir_ < 0 ? -1 : openat(dir_, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  DIR* list = list_fd < 0 ? nullptr : fdopendir(list_fd);
  if (list == nullptr) return failed("open");
  std::vector<uint64_t> numbers;
  while (dirent* file = readdir(list)) {
    std::string name = file->d_name;
    uint64_t number = std::strtoull(name.c_str(), nullptr, 16);
    if (number > 0 && name == segment_name(number)) numbers.push_back(number);
  }
  closedir(list);
  std::sort(numbers.begin(), numbers.end());
  if (!numbers.empty()) next_segment_ = numbers.back() + 1;
  while (!numbers.empty()) {  // remove unused spares (all zeros) and segments with a torn header
    std::string name = segment_name(numbers.back());
    int fd = openat(dir_, name.c_str(), O_RDONLY | O_CLOEXEC);
    if (fd < 0) return failed(name);
    char head[kHeaderRoom] = {};
    ssize_t size = pread(fd, head, sizeof head, 0);
    close(fd);
    bool begun = SpoolDecoder::begins_with_entry({head, sizeof head});
    bool zeros = std::all_of(head, head + sizeof head, [](char byte) { return byte == 0; });
    if (size < 0 || begun) break;
    if (!zeros && SpoolDecoder::any_entry({head, sizeof head}, 1)) break;
    unlinkat(dir_, name.c_str(), 0);
    numbers.pop_back();
  }
  Records records;
  SpoolLengths::Known lengths;
  for (uint64_t number : numbers) {
    found.opened =
        read_segment(number, number == numbers.back(), records, found.why, lengths[number]);
    if (found.opened != Opened::fine) break;
    segments_.push_back({number, 0});
  }
  lengths_.open(dir_fd);
  if (const auto lost = contradiction(lengths_.known(), lengths);
      lost && found.opened == Opened::fine) {
    found.opened = Opened::damaged;
    found.why = *lost;
  }
  for (auto& [entry, record] : records) found.records.push_back(std::move(record));
  std::sort(found.records.begin(), found.records.end(),
            [](const Record& a, const Record& b) { return a.entry < b.entry; });
  if (found.opened == Opened::fine) {
    if (!make_spares(2)) return failed("no room for a segment");
    begin_segment();
    if (!flush()) return failed("write");
  }
  return found;
}

// `why` is set unless the segment is fine. A segment of another version is not damage: it is left
// as it is for a keeper that knows the version.
Spool::Opened Spool::read_segment(uint64_t number, bool last, Records& records, std::string& why,
                                  uint64_t& length) {
  std::string name = segment_name(number);
  int fd = openat(dir_, name.c_str(), O_RDWR | O_CLOEXEC);
  struct stat info {};
  auto damaged = [&why, &name](const std::string& what) {
    why = "spool: " + name + what;
    return Opened::damaged;
  };
  if (fd < 0 || fstat(fd, &info) < 0) return damaged(std::string(": ") + std::strerror(errno));
  File file(fd);
  std::string bytes(static_cast<size_t>(info.st_size), '\0');
  size_t size = 0;
  for (ssize_t n; size < bytes.size(); size += static_cast<size_t>(n)) {
    n = pread(fd, bytes.data() + size, bytes.size() - size, static_cast<off_t>(size));
    if (n <= 0) break;
  }
  bytes.resize(size);
  auto damaged_at = [&damaged](size_t at) {
    return damaged(" is damaged at byte " + std::to_string(at));
  };
  SpoolDecoder decoder(bytes, boot_, number);
  for (SpoolDecoder::Read read; (read = decoder.next(records)) != SpoolDecoder::Read::none;) {
    if (read == SpoolDecoder::Read::malformed) return damaged_at(decoder.at());
    const uint32_t version = decoder.header().version;
    if (version >= 1 && version <= kSpoolVersion) continue;
    why = "spool: " + name + " has version " + std::to_string(version) +
          ", but this keeper reads only versions up to " + std::to_string(kSpoolVersion) +
          "; start the version of muster that wrote it";
    return Opened::failed;
  }
  next_entry_ = std::max(next_entry_, decoder.entry_max());
  const size_t at = decoder.at();
  length = at;
  const bool this_boot = decoder.this_boot();
  if (at == bytes.size() && !last) return Opened::fine;
  if (!last) return damaged_at(at);
  bool zeros = std::all_of(bytes.begin() + static_cast<ptrdiff_t>(at), bytes.end(),
                           [](char byte) { return byte == 0; });
  // A power loss may drop unsynced pages in any order, and no process has survived it. Otherwise a
  // valid entry after an invalid one is not a torn tail.
  if (!zeros && (this_boot || at == 0) && SpoolDecoder::any_entry(bytes, at + 1))
    return damaged_at(at);
  // Synced, because the keeper that wrote it may have died before that, and another segment
  // follows.
  if (ftruncate(fd, static_cast<off_t>(at)) < 0 || fdatasync(fd) < 0)
    return damaged(std::string(": ") + std::strerror(errno));
  return Opened::fine;
}

Spool::Segment* Spool::find(uint64_t number) {
  for (auto& segment : segments_) {
    if (segment.number == number) return &segment;
  }
  return nullptr;
}

size_t Spool::weight(const Record& record) {
  return record.note.size() + kEndRoom;
}

void Spool::adopt(Record& record) {
  std::lock_guard writing(writing_);
  live_[record.entry] = &record;
  live_bytes_ += weight(record);
  record.reserved = !record.ended;
  if (record.reserved) ++open_ends_;
  if (Segment* segment = find(record.segment)) segment->live_bytes += weight(record);
}

bool Spool::make_spares(size_t count) {
  while (spares_.size() < count) {
    std::string name = segment_name(next_segment_);
    int fd = openat(dir_, name.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd < 0) return false;
    auto file = std::make_shared<File>(fd);
    auto size = static_cast<off_t>(segment_bytes_);
    // On a file system that cannot allocate ahead, there is no guarantee for a full disk.
    if (fallocate(fd, 0, 0, size) < 0 && (errno != EOPNOTSUPP || ftruncate(fd, size) < 0)) {
      int error = errno;
      unlinkat(dir_, name.c_str(), 0);
      errno = error;
      return false;
    }
    spares_.emplace_back(next_segment_++, std::move(file));
  }
  return true;
}

void Spool::begin_segment() {
  // Cut and sync the old one before the new one has a header: only the last may end in zeros, or in
  // an entry torn by a power loss.
  if (file_ != nullptr &&
      (ftruncate(file_->fd, static_cast<off_t>(offset_)) < 0 || fdatasync(file_->fd) < 0)) {
    tell_errno("spool: cannot cut and sync a segment");
  }
  segments_.push_back({spares_.front().first, 0});
  file_ = std::move(spares_.front().second);
  spares_.pop_front();
  offset_ = 0;
  pending_.clear();
  encoder_.begin(pending_, {version_, boot_, cluster_, keeper_});
}

// Before an entry of at most this size is appended to pending_: begins a new segment if this one is
// full. Without a spare, or if pending_ cannot be written, the segment grows beyond its size
// instead.
void Spool::make_room(size_t bytes) {
  const size_t size = offset_ + pending_.size() + encoder_.unsealed_bytes() + bytes;
  if (size > segment_bytes_ && !spares_.empty() && write()) begin_segment();
}

void Spool::write_intent(Record& record) {
  make_room(weight(record));
  encoder_.intent(pending_, record);
  record.segment = segments_.back().number;
  segments_.back().live_bytes += weight(record);
}

std::string Spool::reserve(Record& record) {
  std::lock_guard writing(writing_);
  record.entry = ++next_entry_;
  record.keeper = keeper_;
  size_t ends_a_segment = (segment_bytes_ - kHeaderRoom) / kEndRoom;
  size_t spares = 1 + (open_ends_ + 1) / ends_a_segment;
  bool full = offset_ + pending_.size() + weight(record) > segment_bytes_;
  if (!make_spares(spares + full)) {
    room_error_ = errno;
    room_wanted_ = spares + full;
    return std::strerror(room_error_);
  }
  room_error_ = 0;
  record.reserved = true;
  ++open_ends_;
  return "";
}

void Spool::intend(Record& record) {
  std::lock_guard writing(writing_);
  write_intent(record);
  live_[record.entry] = &record;
  live_bytes_ += weight(record);
}

bool Spool::begin(Record& record) {
  std::lock_guard writing(writing_);
  if (record.segment == 0) intend(record);
  return write();
}

void Spool::started(const Record& record) {
  std::lock_guard writing(writing_);
  if (record.segment == 0) return;
  make_room(kEndRoom);
  encoder_.started(pending_, record);
}

void Spool::ended(Record& record) {
  std::lock_guard writing(writing_);
  if (record.error.size() > kErrorMax) record.error.resize(kErrorMax);
  if (std::exchange(record.reserved, false)) --open_ends_;
  if (record.segment == 0) return;
  make_room(kEndRoom);
  encoder_.ended(pending_, record);
}

void Spool::withdraw(Record& record) {
  std::lock_guard writing(writing_);
  if (std::exchange(record.reserved, false)) --open_ends_;
  forget(record);
}

void Spool::forget(const Record& record) {
  std::lock_guard writing(writing_);
  if (live_.erase(record.entry) == 0) return;
  live_bytes_ -= weight(record);
  if (Segment* segment = find(record.segment)) segment->live_bytes -= weight(record);
  forgotten_.push_back(record.entry);
}

void Spool::set_cluster(const std::string& cluster) {
  std::lock_guard writing(writing_);
  if (cluster.empty() || cluster == cluster_) return;
  cluster_ = cluster;
  if (make_spares(2) && flush()) begin_segment();
}

// Writes all that is known of it again.
void Spool::carry(Record& record) {
  write_intent(record);
  make_room(kEndRoom);
  if (record.ended)
    encoder_.ended(pending_, record);
  else if (record.start)
    encoder_.started(pending_, record);
}

void Spool::leave() {
  std::lock_guard writing(writing_);
  may_drop_ = false;
  if (make_spares(2 + 2 * live_bytes_ / segment_bytes_) && flush()) {
    version_ = 1;
    const uint64_t first = spares_.front().first;
    begin_segment();
    for (auto& [entry, record] : live_) carry(*record);
    if (flush()) {
      sync();
      for (; segments_.front().number < first; segments_.pop_front())
        remove_segment(segments_.front().number);
    }
  }
  sync();
}

void Spool::drop_old() {
  may_drop_ = false;  // flush() would call this again
  while (segments_.size() > 1) {
    uint64_t number = segments_.front().number;
    if (segments_.front().live_bytes > 0) {
      if (segments_.size() <= 2 + 4 * live_bytes_ / segment_bytes_) break;
      if (!make_spares(2 + live_bytes_ / segment_bytes_)) break;
      for (auto& [entry, record] : live_) {
        if (record->segment == number) carry(*record);
      }
      segments_.front().live_bytes = 0;
      if (!flush()) break;
      sync();  // durable ends must stay durable
    }
    remove_segment(number);
    segments_.pop_front();
  }
  may_drop_ = true;
}

void Spool::remove_segment(uint64_t number) {
  lengths_.forget(number);
  unlinkat(dir_, segment_name(number).c_str(), 0);
}

bool Spool::flush() {
  std::lock_guard writing(writing_);
  if (!forgotten_.empty()) {
    make_room(kEntryHead + 10 * forgotten_.size());
    encoder_.forgot(pending_, forgotten_);
    forgotten_.clear();
  }
  const bool wrote = !pending_.empty() || encoder_.unsealed_bytes() > 0;
  if (!write()) return false;
  if (may_drop_ && segments_.size() > 1 && (wrote || segments_.front().live_bytes == 0)) drop_old();
  return true;
}

// Writes pending_.
bool Spool::write() {
  encoder_.seal(pending_);
  if (pending_.empty()) return true;
  size_t done = 0;
  while (done < pending_.size()) {
    ssize_t n = pwrite(file_->fd, pending_.data() + done, pending_.size() - done,
                       static_cast<off_t>(offset_ + done));
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) {
      int error = n < 0 ? errno : ENOSPC;
      if (error != write_error_)  // else logged already
        tell("spool: write: %s", std::strerror(error));
      write_error_ = error;
      return false;  // the next one writes all of it again, at the same offset
    }
    done += static_cast<size_t>(n);
  }
  if (write_error_ != 0) tell("spool: writes succeed again");
  write_error_ = 0;
  offset_ += done;
  pending_.clear();
  lengths_.note(segments_.back().number, offset_);
  bool first = false;  // else the sync thread is awake already
  {
    std::lock_guard lock(mutex_);
    first = dirty_.empty();
    if (first || dirty_.back() != file_) dirty_.push_back(file_);
  }
  if (first) dirty_or_done_.notify_one();
  return true;
}

std::string Spool::trouble() {
  std::lock_guard writing(writing_);
  auto text = [](const char* what, int error) {
    return std::string("spool: ") + what + ": " + std::strerror(error);
  };
  if (write_error_ != 0) return text("write", write_error_);
  if (room_error_ != 0 && make_spares(room_wanted_)) room_error_ = 0;
  if (room_error_ != 0) return text("no room for another segment", room_error_);
  if (int error = sync_error_; error != 0) return text("sync", error);
  uint64_t since = sync_since_ns_;
  if (since != 0 && boot_ns() > since + kSyncMaxNs) return "spool: a sync is hanging";
  return "";
}

void Spool::sync() {
  std::lock_guard writing(writing_);
  std::vector<std::shared_ptr<File>> files;
  {
    std::lock_guard lock(mutex_);
    files.swap(dirty_);
  }
  // The sync thread may have taken the newest segment and not synced it yet.
  if (file_ != nullptr) files.push_back(file_);
  for (auto& file : files) fdatasync(file->fd);
  fsync(dir_);  // the segments' names
}

void Spool::run_sync() {
  std::unique_lock lock(mutex_);
  while (!done_) {
    dirty_or_done_.wait(lock, [this] { return done_ || !dirty_.empty(); });
    dirty_or_done_.wait_for(lock, kSyncGather, [this] { return done_; });  // gather more
    auto files = std::move(dirty_);
    dirty_.clear();
    lock.unlock();
    sync_since_ns_ = boot_ns();
    std::vector<std::shared_ptr<File>> failed;
    int error = 0;
    for (auto& file : files) {
      if (fdatasync(file->fd) == 0) continue;
      error = errno;
      failed.push_back(file);
    }
    if (!files.empty()) fsync(dir_);  // the segments' names
    sync_since_ns_ = 0;
    if (!files.empty()) sync_error_ = error;
    files.clear();
    lock.lock();
    dirty_.insert(dirty_.begin(), failed.begin(), failed.end());
  }
}

}  // namespace muster::keeper
