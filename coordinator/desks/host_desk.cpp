#include "coordinator/desks/host_desk.hpp"

#include "core/pod_name.hpp"

#include <algorithm>
#include <charconv>
#include <utility>

namespace muster::coordinator {
namespace {

constexpr uint32_t kNamesShown = 4;

std::string host_of(const core::HostList& list, uint32_t index) {
  const auto& meta = list.object->meta;
  return core::pod_hostname(meta.name, meta.uid, true, {index, 0});
}

std::optional<uint32_t> number(const std::string& text) {
  uint32_t value = 0;
  const char* const last = text.data() + text.size();
  const auto [end, error] = std::from_chars(text.data(), last, value);
  return error == std::errc{} && end == last ? std::optional(value) : std::nullopt;
}

}  // namespace

HostDesk::Change HostDesk::set(JobId job, core::HostListPtr hosts) {
  const auto known = jobs_.find(job);
  Change change = Change::members;
  if (known != jobs_.end()) {
    const core::HostList& before = *known->second;
    const bool same_pods = std::ranges::equal(
        before.hosts, hosts->hosts,
        [](const auto& a, const auto& b) { return a.pod == b.pod && a.node == b.node; });
    if (same_pods && before.count == hosts->count)
      change = before.hosts == hosts->hosts ? Change::none : Change::states;
  }
  if (hosts->object == nullptr || (hosts->count == 0 && hosts->hosts.empty()))
    jobs_.erase(job);
  else
    jobs_.insert_or_assign(job, std::move(hosts));
  wake(job);
  return change;
}

core::HostListPtr HostDesk::of(JobId job) const {
  const auto known = jobs_.find(job);
  return known == jobs_.end() ? nullptr : known->second;
}

std::set<NodeId> HostDesk::nodes_of(JobId job) const {
  std::set<NodeId> nodes;
  if (const auto list = of(job))
    for (const auto& host : list->hosts) nodes.insert(host.node);
  return nodes;
}

std::set<JobId> HostDesk::jobs_on(NodeId node) const {
  std::set<JobId> jobs;
  for (const auto& [job, list] : jobs_)
    for (const auto& host : list->hosts)
      if (host.node == node) jobs.insert(job);
  return jobs;
}

bool HostDesk::is_on(PodId pod, NodeId node) const {
  const auto list = of(pod.job);
  return list != nullptr && std::ranges::any_of(list->hosts, [&](const auto& host) {
           return host.pod == pod.key() && host.node == node;
         });
}

std::optional<uint32_t> HostDesk::resolve(JobId job, const std::string& host,
                                          const std::function<std::string(NodeId)>& name_of) const {
  const auto list = of(job);
  if (list == nullptr) return std::nullopt;
  const auto completions =
      static_cast<uint32_t>(std::max(0, list->object->spec.completions.value_or(0)));
  if (const auto index = number(host); index && *index < completions) return index;
  const std::string_view first = std::string_view(host).substr(0, host.find('.'));
  if (const size_t hyphen = first.rfind('-'); hyphen != std::string_view::npos) {
    const auto index = number(std::string(first.substr(hyphen + 1)));
    if (index && *index < completions && first == host_of(*list, *index)) return index;
  }
  std::optional<uint32_t> found;
  for (const auto& one : list->hosts) {
    if (name_of(one.node) != host) continue;
    if (found) return std::nullopt;
    found = one.pod.index;
  }
  return found;
}

std::string HostDesk::names(JobId job) const {
  const auto list = of(job);
  if (list == nullptr) return "";
  std::string text;
  const uint32_t shown = std::min(list->count, kNamesShown);
  for (uint32_t i = 0; i < shown; ++i) text += (i == 0 ? "" : ", ") + host_of(*list, i);
  if (list->count > shown) text += " to " + host_of(*list, list->count - 1);
  return text;
}

kj::Promise<void> HostDesk::changes(JobId job) {
  auto paf = kj::newPromiseAndFulfiller<void>();
  auto& waiting = waiting_[job];
  std::erase_if(waiting, [](auto& one) { return !one->isWaiting(); });
  waiting.push_back(kj::mv(paf.fulfiller));
  return kj::mv(paf.promise);
}

void HostDesk::wake(JobId job) {
  auto waiting = waiting_.extract(job);
  if (waiting.empty()) return;
  for (auto& one : waiting.mapped()) one->fulfill();
}

void HostDesk::connected() {
  for (auto& [job, waiting] : std::exchange(waiting_, {}))
    for (auto& one : waiting) one->fulfill();
}

}  // namespace muster::coordinator
