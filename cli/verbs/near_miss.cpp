#include "cli/verbs/near_miss.hpp"

#include "client/connect/objects.hpp"
#include "client/inputs/tasks.hpp"
#include "client/news/history.hpp"
#include "client/terminal/text.hpp"
#include "core/index_set.hpp"

#include <algorithm>
#include <optional>
#include <utility>

namespace muster::cli {
namespace {

constexpr char kDigits[] = "0123456789";

// Part of a job, as Slurm and people write it.
struct PartOfJob {
  std::string job, numbers;
};

// "sweep_7", "sweep-7", "sweep7" or "sweep_[5-7]".
std::optional<PartOfJob> part_of_job(const std::string& name) {
  PartOfJob part;
  if (const size_t open = name.rfind("_["); open != std::string::npos && name.ends_with(']')) {
    part = {name.substr(0, open), name.substr(open + 2, name.size() - open - 3)};
  } else {
    const size_t number = name.find_last_not_of(kDigits) + 1;
    part = {name.substr(0, number), name.substr(number)};
    if (part.job.ends_with('_') || part.job.ends_with('-')) part.job.pop_back();
  }
  if (part.job.empty() || part.numbers.empty()) return std::nullopt;
  return part;
}

// "job/sweep", "job/sweep --task 7"; empty: nothing like it exists.
std::string meant(ApiClient& client, const std::string& ns, Kind kind, const std::string& name,
                  Parts parts) {
  if (kind != Kind::job && object(client, object_path(Kind::job, ns, name))) return "job/" + name;
  const auto part = part_of_job(name);
  if (!part) return "";
  const auto job = object(client, object_path(Kind::job, ns, part->job));
  if (!job) return "";
  std::string title = "job/" + part->job;
  if (parts == Parts::none) return title;
  if (const auto tasks = Tasks::of(*job); tasks)
    return title + (tasks->indexes(part->numbers) ? " --task " + part->numbers : "");
  const auto all = static_cast<uint64_t>(number_at(*job, {"spec", "completions"}));
  const bool there = is_indexed(*job) && core::IndexSet::parse_strict(part->numbers, all).ok();
  return title + (there ? " --index " + part->numbers : "");
}

// Where the history has a job of this name; empty: it has none that the user may see.
std::string past(ApiClient& client, const std::string& ns, Kind kind, const std::string& name) {
  if (kind != Kind::job) return "";
  const auto found =
      object(client, history_path(ns, "history") + "?newest=1&name=" + url_encoded(name));
  if (!found) return "";
  const Json& items = at(*found, {"items"});
  if (!items.is_array() || items.empty() || text_at(items.front(), {"name"}) != name) return "";
  const std::string removal = text_at(items.front(), {"removal"});
  return "it was " + (removal == "Expired" ? std::string("removed after its TTL") : "deleted") +
         "; what is kept of it: muster history job/" + name + (ns == "default" ? "" : " -n " + ns);
}

}  // namespace

Error with_near_miss(ApiClient& client, const std::string& ns, Kind kind, const std::string& name,
                     Error error, Parts parts) {
  if (error.code != Errc::not_found) return error;
  const std::string found = meant(client, ns, kind, name, parts);
  std::string hint;
  if (!found.empty())
    hint = "did you mean " + found + "?";
  else if (std::string kept = past(client, ns, kind, name); !kept.empty())
    hint = std::move(kept);
  else if (name.find_first_not_of(kDigits) == std::string::npos)
    hint = "jobs have names instead of numbers: muster get jobs";
  if (hint.empty()) return error;
  error.message.resize(std::min(error.message.find("\n  see: "), error.message.size()));
  error.message += "\n  " + hint;
  return error;
}

}  // namespace muster::cli
