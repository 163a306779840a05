#include "core/pod_name.hpp"

#include <cstdint>
#include <utility>

namespace muster::core {
namespace {

static_assert(kNameAlphabet.size() == 27);
constexpr uint32_t kSuffixes = 27 * 27 * 27 * 27 * 27;
constexpr size_t kBaseMax = 58;  // 63 (a DNS label) minus the last five characters

// splitmix64's finalizer: a bijection of 64 bits.
uint64_t mix(uint64_t x) {
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

// FNV-1a, finalized by mix; `salt` separates different uses of one text.
uint64_t hash(std::string_view text, uint64_t salt) {
  uint64_t h = 0xcbf29ce484222325u ^ mix(salt + 0x9e3779b97f4a7c15u);
  for (unsigned char c : text) h = (h ^ c) * 0x100000001b3u;
  return mix(h);
}

// A permutation of [0, 27^5): four Feistel rounds over 24 bits, repeated until the value is in
// range (at most a few times: 27^5 is 86% of 2^24).
uint32_t permuted(uint32_t number, uint64_t key) {
  do {
    uint32_t left = number >> 12;
    uint32_t right = number & 0xfff;
    for (uint64_t round = 0; round < 4; ++round) {
      uint32_t f = static_cast<uint32_t>(mix(key + (round << 32) + right)) & 0xfff;
      left = std::exchange(right, left ^ f);
    }
    number = left << 12 | right;
  } while (number >= kSuffixes);
  return number;
}

std::string suffix(uint32_t number, uint64_t key) {
  uint32_t n = permuted(number % kSuffixes, key);
  std::string text(5, ' ');
  for (char& c : text) {
    c = kNameAlphabet[n % 27];
    n /= 27;
  }
  return text;
}

void append_hex(std::string& out, uint64_t value, int digits) {
  for (int shift = (digits - 1) * 4; shift >= 0; shift -= 4)
    out += "0123456789abcdef"[value >> shift & 0xf];
}

}  // namespace

std::string pod_uid(std::string_view job_uid, PodKey pod) {
  // 122 bits are free: 60 in the upper half, 62 in the lower. The 64 mixed bits take the lower half
  // and two bits of the upper.
  uint64_t mixed = mix((uint64_t{pod.index} << 32 | pod.attempt) ^ hash(job_uid, 1));
  uint64_t job = hash(job_uid, 2);
  std::string uid;
  uid.reserve(36);
  append_hex(uid, job >> 32, 8);
  uid += '-';
  append_hex(uid, job >> 16 & 0xffff, 4);
  uid += "-4";
  append_hex(uid, (job & 0x3ff) << 2 | mixed >> 62, 3);
  uid += '-';
  append_hex(uid, 0x8000 | (mixed >> 48 & 0x3fff), 4);
  uid += '-';
  append_hex(uid, mixed & 0xffffffffffffu, 12);
  return uid;
}

std::string pod_name(std::string_view job_name, std::string_view job_uid, bool indexed,
                     PodKey pod) {
  if (!indexed) {
    std::string base = std::string(job_name) + "-";
    return base.substr(0, kBaseMax) + suffix(pod.index, hash(job_uid, 3));
  }
  std::string tail = "-" + std::to_string(pod.index) + "-";
  std::string base = std::string(job_name.substr(0, kBaseMax - tail.size())) + tail;
  return base + suffix(pod.attempt, hash(job_uid, 4 + uint64_t{pod.index}));
}

std::string pod_hostname(std::string_view job_name, std::string_view job_uid, bool indexed,
                         PodKey pod) {
  if (!indexed) return pod_name(job_name, job_uid, false, pod);
  return std::string(job_name) + "-" + std::to_string(pod.index);
}

}  // namespace muster::core
