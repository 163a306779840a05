#include "coordinator/desks/fence_desk.hpp"

#include <algorithm>
#include <utility>

namespace muster::coordinator {

namespace {

bool has(const core::HostList& list, PodKey pod) {
  return std::ranges::any_of(list.hosts, [pod](const auto& host) { return host.pod == pod; });
}

// Whether the ranks are the same as before, except that some may have ended, which puts them past
// every fence.
bool are_same(const core::HostList& before, const core::HostList& now) {
  return before.count == now.count &&
         std::ranges::all_of(now.hosts, [&](const auto& host) { return has(before, host.pod); }) &&
         std::ranges::all_of(before.hosts, [&](const auto& host) {
           return has(now, host.pod) || now.over.contains(host.pod.index);
         });
}

}  // namespace

void FenceDesk::set(JobId job, const core::HostListPtr& hosts) {
  if (hosts->hosts.empty()) {
    meetings_.erase(job);  // calls that are waiting fail
    return;
  }
  Meeting& meeting = meetings_[job];
  const bool same = meeting.hosts != nullptr && are_same(*meeting.hosts, *hosts);
  meeting.hosts = hosts;
  if (same) return;
  meeting.group = ++last_group_;
  meeting.all = nullptr;
  std::erase_if(meeting.ranks, [&hosts](const auto& rank) {
    return std::ranges::none_of(hosts->hosts,
                                [&](const auto& host) { return host.pod == rank.first; });
  });
  release(meeting);
}

kj::Promise<uint64_t> FenceDesk::come(PodId pod, uint32_t number, KeyValues puts) {
  Meeting& meeting = meetings_[pod.job];
  Rank& rank = meeting.ranks[pod.key()];
  if (number >= rank.number) rank = {number, std::move(puts)};
  meeting.all = nullptr;
  auto paf = kj::newPromiseAndFulfiller<uint64_t>();
  std::erase_if(meeting.waiting, [](Waiting& one) { return !one.go->isWaiting(); });
  meeting.waiting.push_back({number, pod.key(), kj::mv(paf.fulfiller)});
  release(meeting);
  return kj::mv(paf.promise);
}

void FenceDesk::release(Meeting& meeting) {
  if (meeting.hosts == nullptr || meeting.hosts->count == 0 ||
      meeting.hosts->hosts.size() + meeting.hosts->over.size() < meeting.hosts->count)
    return;
  uint32_t all_at = ~0u;
  for (const auto& host : meeting.hosts->hosts) {
    const auto rank = meeting.ranks.find(host.pod);
    all_at = std::min(all_at, rank == meeting.ranks.end() ? 0 : rank->second.number);
  }
  for (auto one = meeting.waiting.begin(); one != meeting.waiting.end();) {
    if (one->number <= all_at && meeting.ranks.contains(one->pod)) {
      one->go->fulfill(uint64_t{meeting.group});
      one = meeting.waiting.erase(one);
    } else {
      ++one;
    }
  }
}

std::shared_ptr<const FenceDesk::KeyValues> FenceDesk::gather(JobId job, uint64_t group) {
  const auto found = meetings_.find(job);
  if (found == meetings_.end() || found->second.group != group) return nullptr;
  Meeting& meeting = found->second;
  if (meeting.all == nullptr) {
    auto all = std::make_shared<KeyValues>();
    for (const auto& [pod, rank] : meeting.ranks) all->insert(rank.puts.begin(), rank.puts.end());
    meeting.all = std::move(all);
  }
  return meeting.all;
}

}  // namespace muster::coordinator
