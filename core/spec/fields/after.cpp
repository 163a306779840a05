#include "core/spec/fields/after.hpp"

#include <algorithm>
#include <array>

namespace muster::core {
namespace {

constexpr std::array<std::string_view, 4> kNeeded = {"ok", "notok", "any", "each"};  // as the enum
constexpr std::string_view kCorr = "corr";  // Slurm's aftercorr

}  // namespace

std::string_view name(Needed needed) {
  return kNeeded.at(static_cast<size_t>(needed));
}

Result<std::vector<After>> parse_after(std::string_view text) {
  std::vector<After> all;
  while (true) {
    const size_t comma = text.find(',');
    const std::string_view entry = text.substr(0, comma);
    const size_t colon = entry.find(':');
    const std::string_view kind = entry.substr(0, colon);
    const auto* needed = std::ranges::find(kNeeded, kind == kCorr ? name(Needed::each) : kind);
    if (colon == std::string_view::npos || colon + 1 == entry.size() || needed == kNeeded.end())
      return invalid("`" + std::string(entry) +
                     "`: must be ok:JOB, notok:JOB, any:JOB or each:JOB, or several of them with "
                     "commas");
    std::string job(entry.substr(colon + 1));
    if (std::ranges::find(all, job, &After::job) != all.end())
      return invalid("`" + std::string(entry) + "`: the job is named twice");
    if (all.size() == kAfterMax)
      return invalid("must have at most " + std::to_string(kAfterMax) + " entries");
    all.push_back({static_cast<Needed>(needed - kNeeded.begin()), std::move(job)});
    if (comma == std::string_view::npos) return all;
    text.remove_prefix(comma + 1);
  }
}

std::vector<After> after_of(const StringMap& annotations) {
  const auto it = annotations.find(std::string(kAfterKey));
  if (it == annotations.end()) return {};
  auto all = parse_after(it->second);
  return all ? std::move(*all) : std::vector<After>{};
}

void validate_after(const JobMeta& meta, Violations& found) {
  const auto it = meta.annotations.find(std::string(kAfterKey));
  if (it == meta.annotations.end()) return;
  const std::string path = "metadata.annotations[" + it->first + "]";
  const auto all = parse_after(it->second);
  if (!all)
    found.invalid(path, it->second, all.error().message);
  else if (std::ranges::find(*all, meta.name, &After::job) != all->end())
    found.invalid(path, it->second, "must not name the job itself");
}

}  // namespace muster::core
