#include "cli/verbs/run/named_job.hpp"

#include "client/connect/objects.hpp"
#include "client/terminal/json.hpp"

#include <algorithm>
#include <cstdint>
#include <utility>

namespace muster::cli {
namespace {

constexpr size_t kNameMax = 52;  // so that the host names of 10^9 pods are labels of DNS

Result<Json> create_numbered(ApiClient& client, const std::string& ns, const std::string& name,
                             const std::function<Result<Json>(const std::string&)>& create) {
  auto number = free_number([&](uint32_t one) -> Result<bool> {
    auto found = object(client, object_path(Kind::job, ns, numbered_name(name, one)));
    if (found) return true;
    if (found.error().code == Errc::not_found) return false;
    return found.error();
  });
  if (!number) return number.error();
  for (uint32_t next = *number;; ++next) {
    auto job = create(numbered_name(name, next));
    if (job || job.error().code != Errc::exists) return job;  // else another client was faster
  }
}

// Deletes the finished job of this name.
Status clear_name(ApiClient& client, const std::string& ns, const std::string& name) {
  const std::string path = object_path(Kind::job, ns, name);
  auto job = object(client, path);
  if (!job) return job.error().code == Errc::not_found ? Status(Nothing{}) : job.error();
  if (end_of(*job) == JobEnd::none)
    return Error{
        Errc::conflict,
        "--replace: job/" + name + " has not finished: wait for it, delete it, or use --unique",
        {}};
  const Json deletion = {{"kind", "DeleteOptions"},
                         {"apiVersion", "v1"},
                         {"propagationPolicy", "Background"},
                         {"preconditions", {{"uid", text_at(*job, {"metadata", "uid"})}}}};
  auto removed = client.remove(path, dumped(deletion));
  if (!removed) return removed.error();
  if (!removed->ok() && removed->status != 404) return refusal(*removed);
  return Nothing{};
}

// What would be right, for a job whose name is taken.
Error with_ways_out(Error error) {
  std::string& text = error.violations.empty() ? error.message : error.violations.front().detail;
  text += "; use another name, --unique to have a number appended, or --replace if it has finished";
  return error;
}

}  // namespace

std::string numbered_name(const std::string& name, uint32_t number) {
  const std::string suffix = "-" + std::to_string(number);
  std::string base = name.substr(0, kNameMax - suffix.size());
  while (base.ends_with('-') || base.ends_with('.')) base.pop_back();
  return base + suffix;
}

Result<uint32_t> free_number(const std::function<Result<bool>(uint32_t)>& taken) {
  uint32_t below = 1, free = 2;  // `below` is taken
  for (;; below = std::exchange(free, free * 2)) {
    auto found = taken(free);
    if (!found) return found.error();
    if (!*found) break;
  }
  while (free - below > 1) {
    const uint32_t middle = below + (free - below) / 2;
    auto found = taken(middle);
    if (!found) return found.error();
    (*found ? below : free) = middle;
  }
  return free;
}

Result<Json> create_named(ApiClient& client, const std::string& ns, const std::string& name,
                          IfExists exists,
                          const std::function<Result<Json>(const std::string&)>& create) {
  auto job = create(name);
  if (job || job.error().code != Errc::exists || name.empty()) return job;
  if (exists == IfExists::refuse) return with_ways_out(job.error());
  if (exists == IfExists::number) return create_numbered(client, ns, name, create);
  if (Status cleared = clear_name(client, ns, name); !cleared) return cleared.error();
  return create(name);
}

}  // namespace muster::cli
