#include "core/node/cpus.hpp"

#include <algorithm>
#include <charconv>
#include <map>

namespace muster::core::node {
namespace {

using Cpus = std::vector<Cpu>;
using Key = uint32_t Cpu::*;

std::map<uint32_t, Cpus> grouped(const Cpus& cpus, Key key) {
  std::map<uint32_t, Cpus> groups;
  for (const Cpu& cpu : cpus) groups[cpu.*key].push_back(cpu);
  return groups;
}

// Takes `count` CPUs of one NUMA node. `sizes`: how many CPUs each core has, taken ones included.
void take_cores(const Cpus& free, const std::map<uint32_t, size_t>& sizes, size_t count,
                CpuList& out) {
  Cpus left = free;
  while (count > 0) {
    const auto cores = grouped(left, &Cpu::core);
    const Cpus* best = nullptr;
    // A whole core that is still needed; else one that nobody has; else the one with most left.
    const auto rank = [&](const Cpus& core) {
      const bool whole = core.size() == sizes.at(core.front().core);
      return std::pair(whole ? (core.size() <= count ? 2 : 1) : 0, core.size());
    };
    for (const auto& [number, core] : cores)
      if (best == nullptr || rank(core) > rank(*best)) best = &core;
    const size_t some = std::min(count, best->size());
    const uint32_t core = best->front().core;
    for (size_t i = 0; i < some; ++i) out.push_back((*best)[i].number);
    count -= some;
    std::erase_if(left, [core](const Cpu& cpu) { return cpu.core == core; });
  }
}

// How many of these are of cores that nobody has.
size_t unshared(const Cpus& free, const std::map<uint32_t, size_t>& sizes) {
  size_t count = 0;
  for (const auto& [number, core] : grouped(free, &Cpu::core))
    if (core.size() == sizes.at(number)) count += core.size();
  return count;
}

// Takes `count` of `free`, which has as many: from the smallest group by keys[0] that has enough,
// if possible without sharing cores, or else from the largest and then others.
void take(Cpus free, const std::map<uint32_t, size_t>& sizes, const Key* keys, size_t depth,
          size_t count, CpuList& out) {
  if (depth == 0) return take_cores(free, sizes, count, out);
  while (count > 0) {
    const auto groups = grouped(free, keys[0]);
    const Cpus *fits = nullptr, *most = nullptr;
    bool alone = false;  // `fits` needs no core that somebody has
    for (const auto& [number, group] : groups) {
      if (most == nullptr || group.size() > most->size()) most = &group;
      if (group.size() < count) continue;
      const bool could = unshared(group, sizes) >= count;
      if (fits == nullptr || could > alone || (could == alone && group.size() < fits->size())) {
        fits = &group;
        alone = could;
      }
    }
    const Cpus& from = fits != nullptr ? *fits : *most;
    const size_t some = std::min(count, from.size());
    take(from, sizes, keys + 1, depth - 1, some, out);
    count -= some;
    const uint32_t done = from.front().*keys[0];
    std::erase_if(free, [&](const Cpu& cpu) { return cpu.*keys[0] == done; });
  }
}

}  // namespace

CpuList allocate_cpus(const std::vector<Cpu>& all, const std::set<uint32_t>& taken, size_t count) {
  std::map<uint32_t, size_t> sizes;
  Cpus free;
  for (const Cpu& cpu : all) {
    ++sizes[cpu.core];
    if (!taken.contains(cpu.number)) free.push_back(cpu);
  }
  CpuList out;
  if (free.size() < count) return out;
  std::ranges::sort(free);
  constexpr Key kKeys[] = {&Cpu::package, &Cpu::numa};
  take(std::move(free), sizes, kKeys, std::size(kKeys), count, out);
  std::ranges::sort(out);
  return out;
}

std::string cpu_list_text(const CpuList& cpus) {
  std::string text;
  for (size_t i = 0; i < cpus.size();) {
    size_t end = i + 1;
    while (end < cpus.size() && cpus[end] == cpus[end - 1] + 1) ++end;
    if (!text.empty()) text += ',';
    text += std::to_string(cpus[i]);
    if (end - i > 1) text += '-' + std::to_string(cpus[end - 1]);
    i = end;
  }
  return text;
}

std::optional<CpuList> parse_cpu_list(std::string_view text) {
  if (text.size() > kCpuListTextMax) return std::nullopt;
  CpuList cpus;
  const auto number = [&text]() -> std::optional<uint32_t> {
    uint32_t value = 0;
    const auto read = std::from_chars(text.data(), text.data() + text.size(), value);
    if (read.ec != std::errc{} || value > kCpuNumberMax) return std::nullopt;
    text.remove_prefix(static_cast<size_t>(read.ptr - text.data()));
    return value;
  };
  const auto skip = [&text](char c) {
    const bool there = text.starts_with(c);
    if (there) text.remove_prefix(1);
    return there;
  };
  while (!text.empty()) {
    if (!cpus.empty() && !skip(',')) return std::nullopt;
    const auto from = number();
    const auto to = from && skip('-') ? number() : from;
    if (!from || !to || *to < *from || (!cpus.empty() && *from <= cpus.back())) return std::nullopt;
    for (uint32_t n = *from; n <= *to; ++n) cpus.push_back(n);
  }
  return cpus;
}

}  // namespace muster::core::node
