#include "keeper/files/spool_format.hpp"

#include <algorithm>
#include <utility>

namespace muster::keeper {
namespace {

constexpr uint32_t kMark = 0x5053554d;   // "MUSP"
constexpr uint16_t kShortMark = 0x534d;  // "MS"
constexpr size_t kHead = 12;             // mark, length, crc
constexpr size_t kShortHead = 6;         // mark, crc; the length follows
constexpr size_t kEndsMax = 32u << 10;   // bytes of an entry with several ends

enum class Kind : uint8_t { header = 1, intent, started, ended, forgot };

// Bits of an intent of version 2: what follows. Usually these are 0, and the keeper is the
// header's.
constexpr uint8_t kHasAttempt = 1, kHasContainer = 2, kHasInstance = 4, kHasKeeper = 8;
// Of an end.
constexpr uint8_t kLost = 1, kOutOfMemory = 2, kFenced = 4, kHasExit = 8, kHasSignal = 16,
                  kHasError = 32, kHasUsage = 64;  // the last since version 3

// Numbers of version 2: seven bits in each byte, the lowest first; the last byte has no eighth bit.
void put_number(std::string& out, uint64_t value) {
  for (; value >= 0x80; value >>= 7) out.push_back(static_cast<char>(value | 0x80));
  out.push_back(static_cast<char>(value));
}

// A number as its difference to `last`, small if they are close, whatever the sign.
void put_change(std::string& out, uint64_t value, uint64_t& last) {
  const uint64_t change = value - std::exchange(last, value);
  put_number(out, (change << 1) ^ (change >> 63 != 0 ? ~uint64_t{0} : 0));
}

void put_text(std::string& out, std::string_view text) {
  put_number(out, text.size());
  out.append(text);
}

// Reads what those have written.
class ShortReader {
 public:
  explicit ShortReader(std::string_view bytes) : in_(bytes) {}
  uint64_t number() {
    uint64_t value = 0;
    for (int shift = 0; shift < 64; shift += 7) {
      const auto byte = in_.num<uint8_t>();
      value |= uint64_t{byte & 0x7fu} << shift;
      if ((byte & 0x80) == 0) return value;
    }
    fits_ = false;
    return 0;
  }
  uint64_t change(uint64_t& last) {
    const uint64_t coded = number();
    return last += (coded >> 1) ^ ((coded & 1) != 0 ? ~uint64_t{0} : 0);
  }
  uint8_t byte() { return in_.num<uint8_t>(); }
  template <std::integral T>
  T fixed() {
    return in_.num<T>();
  }
  std::string_view bytes(uint64_t size) {
    if (size > in_.rest().size()) {
      fits_ = false;
      return {};
    }
    const std::string_view found = in_.rest().substr(0, size);
    in_ = Reader(in_.rest().substr(size));
    return found;
  }
  std::string_view text() { return bytes(number()); }
  bool any() const { return ok() && !in_.rest().empty(); }
  bool ok() const { return fits_ && in_.ok(); }

 private:
  Reader in_;
  bool fits_ = true;
};

void put_entry_1(std::string& out, Kind kind, std::string_view payload) {
  std::string body(1, static_cast<char>(kind));
  body.append(payload);
  Writer(out).num(kMark).num(static_cast<uint32_t>(body.size())).num(crc32(body));
  out += body;
  out.append(-(kHead + body.size()) & 7, '\0');
}

void put_entry_2(std::string& out, Kind kind, std::string_view payload) {
  std::string body(1, static_cast<char>(kind));
  body.append(payload);
  Writer(out).num(kShortMark).num(crc32(body));
  put_text(out, body);
}

struct Entry {
  size_t size = 0;  // 0: there is no valid one
  uint8_t kind = 0;
  std::string_view payload;
};

// The entry at the start of `bytes`.
Entry entry_1_at(std::string_view bytes) {
  Reader in(bytes);
  const auto mark = in.num<uint32_t>();
  const auto length = in.num<uint32_t>();
  const auto crc = in.num<uint32_t>();
  if (!in.ok() || mark != kMark || length == 0 || in.rest().size() < length) return {};
  const std::string_view body = in.rest().substr(0, length);
  const size_t size = (kHead + length + 7) & ~size_t{7};
  if (crc32(body) != crc || bytes.size() < size) return {};
  return {size, static_cast<uint8_t>(body[0]), body.substr(1)};
}

Entry entry_2_at(std::string_view bytes) {
  if (bytes.size() < kShortHead) return {};
  Reader in(bytes);
  const auto mark = in.num<uint16_t>();
  const auto crc = in.num<uint32_t>();
  if (mark != kShortMark) return {};
  ShortReader rest(in.rest());
  const std::string_view body = rest.text();
  if (!rest.ok() || body.empty() || crc32(body) != crc) return {};
  return {static_cast<size_t>(body.end() - bytes.begin()), static_cast<uint8_t>(body[0]),
          body.substr(1)};
}

// The start as it is written: if there is none, pid 0 and the time of the attempt.
Start start_of(const Record& record) {
  return record.start.value_or(Start{0, record.tried_ns, 0});
}

void set_start(Record& record, const Start& start) {
  record.start.reset();
  if (start.pid == 0)
    record.tried_ns = start.at_ns;
  else
    record.start = start;
}

void put_note(std::string& out, const std::string& note, std::string& last) {
  const size_t most = std::min(note.size(), last.size());
  const auto head = static_cast<size_t>(
      std::mismatch(note.begin(), note.begin() + static_cast<ptrdiff_t>(most), last.begin()).first -
      note.begin());
  const auto tail = static_cast<size_t>(
      std::mismatch(note.rbegin(), note.rbegin() + static_cast<ptrdiff_t>(most - head),
                    last.rbegin())
          .first -
      note.rbegin());
  put_number(out, head);
  put_number(out, tail);
  put_text(out, std::string_view(note).substr(head, note.size() - head - tail));
  last = note;
}

void read_note(ShortReader& in, std::string& last) {
  const uint64_t head = in.number(), tail = in.number();
  const std::string_view middle = in.text();
  if (!in.ok() || head > last.size() || tail > last.size() - head) {
    in.bytes(UINT64_MAX);  // malformed
    return;
  }
  last = last.substr(0, head) + std::string(middle) + last.substr(last.size() - tail);
}

}  // namespace

// ---- the encoder

void SpoolEncoder::begin(std::string& out, const SegmentHeader& header) {
  version_ = header.version;
  keeper_ = header.keeper;
  last_ = {};
  ends_.clear();
  std::string payload;
  Writer(payload).num(version_).text(header.boot).text(header.cluster).num(keeper_);
  put_entry_1(out, Kind::header, payload);
}

void SpoolEncoder::intent(std::string& out, const Record& record) {
  seal(out);
  std::string payload;
  const uint64_t at_ns = start_of(record).at_ns;
  if (version_ == 1) {
    Writer to(payload);
    to.num(record.entry);
    record.key.write(to);
    to.num(at_ns).num(record.keeper).text(record.note);
    return put_entry_1(out, Kind::intent, payload);
  }
  const Key& key = record.key;
  const auto has = static_cast<uint8_t>(
      (key.attempt != 0 ? kHasAttempt : 0) | (key.container != 0 ? kHasContainer : 0) |
      (key.instance != 0 ? kHasInstance : 0) | (record.keeper != keeper_ ? kHasKeeper : 0));
  Writer(payload).num(has);
  put_change(payload, record.entry, last_.entry);
  put_change(payload, key.job, last_.job);
  put_change(payload, key.index, last_.index);
  if (has & kHasAttempt) put_number(payload, key.attempt);
  if (has & kHasContainer) put_number(payload, key.container);
  if (has & kHasInstance) put_number(payload, key.instance);
  if (has & kHasKeeper) Writer(payload).num(record.keeper);
  put_change(payload, at_ns, last_.time_ns);
  put_note(payload, record.note, last_.note);
  put_entry_2(out, Kind::intent, payload);
}

void SpoolEncoder::started(std::string& out, const Record& record) {
  seal(out);
  std::string payload;
  const Start start = start_of(record);
  if (version_ == 1) {
    Writer(payload).num(record.entry).num(start.pid).num(start.ticks).num(start.at_ns);
    return put_entry_1(out, Kind::started, payload);
  }
  put_change(payload, record.entry, last_.entry);
  put_change(payload, static_cast<uint32_t>(start.pid), last_.pid);
  put_number(payload, start.ticks);
  put_change(payload, start.at_ns, last_.time_ns);
  put_entry_2(out, Kind::started, payload);
}

void SpoolEncoder::ended(std::string& out, const Record& record) {
  const Start start = start_of(record);
  if (version_ == 1) {
    std::string payload;
    Writer(payload)
        .num(record.entry)
        .num(start.pid)
        .num(int32_t{record.exit_code})
        .num(int32_t{record.signal})
        .num(uint8_t{record.lost})
        .num(start.at_ns)
        .num(record.end_ns)
        .text(record.error)
        .num(uint8_t{record.out_of_memory})
        .num(uint8_t{record.fenced})
        .num(record.used.user_us)
        .num(record.used.system_us)
        .num(record.used.peak_bytes);
    return put_entry_1(out, Kind::ended, payload);
  }
  const auto has = static_cast<uint8_t>(
      (record.lost ? kLost : 0) | (record.out_of_memory ? kOutOfMemory : 0) |
      (record.fenced ? kFenced : 0) | (record.exit_code != 0 ? kHasExit : 0) |
      (record.signal != 0 ? kHasSignal : 0) | (record.error.empty() ? 0 : kHasError) |
      (version_ >= 3 && record.used.known() ? kHasUsage : 0));
  Writer(ends_).num(has);
  put_change(ends_, record.entry, last_.entry);
  put_change(ends_, static_cast<uint32_t>(start.pid), last_.pid);
  put_change(ends_, start.at_ns, last_.time_ns);
  uint64_t from = start.at_ns;
  put_change(ends_, record.end_ns, from);
  if (has & kHasExit) put_number(ends_, static_cast<uint32_t>(record.exit_code));
  if (has & kHasSignal) put_number(ends_, static_cast<uint32_t>(record.signal));
  if (has & kHasError) put_text(ends_, record.error);
  if (has & kHasUsage) {
    put_number(ends_, record.used.user_us);
    put_number(ends_, record.used.system_us);
    put_number(ends_, record.used.peak_bytes);
  }
  if (ends_.size() >= kEndsMax) seal(out);
}

void SpoolEncoder::forgot(std::string& out, const std::vector<uint64_t>& entries) {
  seal(out);
  std::string payload;
  for (const uint64_t entry : entries) {
    if (version_ == 1)
      Writer(payload).num(entry);
    else
      put_change(payload, entry, last_.entry);
  }
  if (version_ == 1)
    put_entry_1(out, Kind::forgot, payload);
  else
    put_entry_2(out, Kind::forgot, payload);
}

void SpoolEncoder::seal(std::string& out) {
  if (!ends_.empty()) put_entry_2(out, Kind::ended, std::exchange(ends_, {}));
}

// ---- the decoder

bool SpoolDecoder::begins_with_entry(std::string_view bytes) {
  return entry_1_at(bytes).size > 0;
}

bool SpoolDecoder::any_entry(std::string_view bytes, size_t from) {
  for (size_t at = from; at < bytes.size(); ++at) {
    const std::string_view rest = bytes.substr(at);
    if ((at & 7) == 0 && entry_1_at(rest).size > 0) return true;
    if (entry_2_at(rest).size > 0) return true;
  }
  return false;
}

SpoolDecoder::Read SpoolDecoder::next(Records& records) {
  const std::string_view rest = bytes_.substr(at_);
  const bool first = at_ == 0;
  const Entry entry = first || header_.version == 1 ? entry_1_at(rest) : entry_2_at(rest);
  if (entry.size == 0) return Read::none;
  if (first) {
    Reader in(entry.payload);
    header_.version = in.num<uint32_t>();
    header_.boot = in.text();
    header_.cluster = in.text();
    header_.keeper = in.num<uint64_t>();
    if (entry.kind != static_cast<uint8_t>(Kind::header)) return Read::malformed;
    const bool known = header_.version >= 1 && header_.version <= kSpoolVersion;
    if (known && !in.ok()) return Read::malformed;
  } else if (!(header_.version == 1 ? apply_1(entry.kind, entry.payload, records)
                                    : apply_2(entry.kind, entry.payload, records))) {
    return Read::malformed;
  }
  at_ += entry.size;
  return first ? Read::header : Read::entry;
}

void SpoolDecoder::add(Record record, Records& records) {
  // If it was carried from an earlier segment, its start and end are there, and may be torn here.
  if (records.contains(record.entry)) return;
  record.segment = number_;
  record.this_boot = this_boot();
  forget_times(record);
  entry_max_ = std::max(entry_max_, record.entry);
  records[record.entry] = std::move(record);
}

// Times before this boot count as the greatest possible age.
void SpoolDecoder::forget_times(Record& record) const {
  if (this_boot()) return;
  record.tried_ns = record.end_ns = 0;
  if (record.start) record.start->at_ns = 0;
}

bool SpoolDecoder::apply_1(uint8_t kind, std::string_view payload, Records& records) {
  Reader in(payload);
  if (kind == static_cast<uint8_t>(Kind::forgot)) {
    while (in.rest().size() >= sizeof(uint64_t)) records.erase(in.num<uint64_t>());
    return in.ok();
  }
  if (kind == static_cast<uint8_t>(Kind::intent)) {
    Record record;
    record.entry = in.num<uint64_t>();
    record.key = Key::read(in);
    record.tried_ns = in.num<uint64_t>();
    record.keeper = in.num<uint64_t>();
    record.note = in.text();
    if (in.ok()) add(std::move(record), records);
    return in.ok();
  }
  if (kind != static_cast<uint8_t>(Kind::started) && kind != static_cast<uint8_t>(Kind::ended))
    return false;
  const auto it = records.find(in.num<uint64_t>());
  if (it == records.end()) return in.ok();
  Record changed = it->second;
  Start start{.pid = in.num<int32_t>()};
  if (kind == static_cast<uint8_t>(Kind::started)) {
    start.ticks = in.num<uint64_t>();
    start.at_ns = in.num<uint64_t>();
  } else {
    changed.ended = true;
    changed.exit_code = in.num<int32_t>();
    changed.signal = in.num<int32_t>();
    changed.lost = in.num<uint8_t>() != 0;
    start.at_ns = in.num<uint64_t>();
    changed.end_ns = in.num<uint64_t>();
    changed.error = in.text();
    changed.out_of_memory = !in.rest().empty() && in.num<uint8_t>() != 0;
    changed.fenced = !in.rest().empty() && in.num<uint8_t>() != 0;
    if (!in.rest().empty()) {
      changed.used.user_us = in.num<uint64_t>();
      changed.used.system_us = in.num<uint64_t>();
      changed.used.peak_bytes = in.num<uint64_t>();
    }
  }
  if (!in.ok()) return false;
  set_start(changed, start);
  forget_times(changed);
  it->second = std::move(changed);
  return true;
}

bool SpoolDecoder::apply_2(uint8_t kind, std::string_view payload, Records& records) {
  ShortReader in(payload);
  if (kind == static_cast<uint8_t>(Kind::forgot)) {
    while (in.any()) records.erase(in.change(last_.entry));
    return in.ok();
  }
  if (kind == static_cast<uint8_t>(Kind::intent)) {
    Record record;
    const uint8_t has = in.byte();
    record.entry = in.change(last_.entry);
    record.key.job = in.change(last_.job);
    record.key.index = static_cast<uint32_t>(in.change(last_.index));
    if (has & kHasAttempt) record.key.attempt = static_cast<uint32_t>(in.number());
    if (has & kHasContainer) record.key.container = static_cast<uint16_t>(in.number());
    if (has & kHasInstance) record.key.instance = static_cast<uint16_t>(in.number());
    record.keeper = has & kHasKeeper ? in.fixed<uint64_t>() : header_.keeper;
    record.tried_ns = in.change(last_.time_ns);
    read_note(in, last_.note);
    record.note = last_.note;
    if (in.ok()) add(std::move(record), records);
    return in.ok();
  }
  if (kind != static_cast<uint8_t>(Kind::started) && kind != static_cast<uint8_t>(Kind::ended))
    return false;
  while (in.any()) {
    const bool end = kind == static_cast<uint8_t>(Kind::ended);
    const uint8_t has = end ? in.byte() : uint8_t{0};
    const auto it = records.find(in.change(last_.entry));
    Record unknown;
    Record& record = it == records.end() ? unknown : it->second;
    Start start{.pid = static_cast<int32_t>(in.change(last_.pid))};
    if (!end) start.ticks = in.number();
    start.at_ns = in.change(last_.time_ns);
    set_start(record, start);
    if (end) {
      record.ended = true;
      record.lost = (has & kLost) != 0;
      record.out_of_memory = (has & kOutOfMemory) != 0;
      record.fenced = (has & kFenced) != 0;
      uint64_t end_ns = start.at_ns;
      record.end_ns = in.change(end_ns);
      record.exit_code = has & kHasExit ? static_cast<int32_t>(in.number()) : 0;
      record.signal = has & kHasSignal ? static_cast<int32_t>(in.number()) : 0;
      record.error = has & kHasError ? in.text() : std::string_view();
      record.used = {};
      if (has & kHasUsage) record.used = {in.number(), in.number(), in.number()};
    }
    forget_times(record);
  }
  return in.ok();
}

}  // namespace muster::keeper
