#include "coordinator/desks/reach_desk.hpp"

#include "base/log.hpp"
#include "coordinator/links/wire_text.hpp"

#include <algorithm>
#include <set>
#include <utility>

namespace muster::coordinator {
namespace {

constexpr Millis kReachGatherMs = 100;  // several nodes may be about to register
constexpr Millis kMeetMaxMs = 3'000, kReachMaxMs = 30'000;
constexpr size_t kReachWhyMax = 200, kGreetingMax = 64;  // bytes

}  // namespace

void ReachDesk::set(JobId job, const core::HostList& hosts) {
  std::vector<NodeId> nodes;
  for (const core::HostList::Host& host : hosts.hosts)
    if (std::ranges::find(nodes, host.node) == nodes.end()) nodes.push_back(host.node);
  const bool tries =
      nodes.size() > 1 && hosts.object != nullptr && core::uses_node_addresses(*hosts.object);
  const auto known = watches_.find(job);
  if (known != watches_.end() && tries && known->second.nodes == nodes) return;
  if (!tries) {
    if (known == watches_.end()) return;
    known->second.reach.keep({});
    show(job, known->second, false);
    watches_.erase(known);
    return;
  }
  const bool first = known == watches_.end();
  Watch& watch = watches_[job];
  watch.first_try_until = context_.timer.now() + kFirstTryMs * kj::MILLISECONDS;
  watch.name = hosts.object->meta.ns + "/" + hosts.object->meta.name;
  watch.nodes = std::move(nodes);
  watch.reach.keep({watch.nodes.begin(), watch.nodes.end()});
  show(job, watch, false);
  start(job, watch, first ? 0 : kReachGatherMs);
}

void ReachDesk::connected(NodeId node) {
  for (auto& [job, watch] : watches_)
    if (std::ranges::find(watch.nodes, node) != watch.nodes.end())
      start(job, watch, kReachGatherMs);
}

kj::Promise<void> ReachDesk::first_try(JobId job) {
  const auto watch = watches_.find(job);
  if (watch == watches_.end() || context_.timer.now() >= watch->second.first_try_until)
    return kj::READY_NOW;
  auto paf = kj::newPromiseAndFulfiller<void>();
  watch->second.until_tried.push_back(kj::mv(paf.fulfiller));
  return paf.promise
      .catch_([](kj::Exception&&) {})  // the job no longer tries
      .exclusiveJoin(context_.timer.atTime(watch->second.first_try_until));
}

void ReachDesk::tried(Watch& watch) {
  watch.first_try_until = kj::origin<kj::TimePoint>();
  for (auto& one : std::exchange(watch.until_tried, {})) one->fulfill();
}

void ReachDesk::start(JobId job, Watch& watch, Millis pause_ms) {
  watch.rounds = rounds(job, pause_ms).eagerlyEvaluate([](kj::Exception&& e) {
    log::error("nodes of an MPI job no longer try each other: {}", e.getDescription().cStr());
  });
}

kj::Promise<void> ReachDesk::rounds(JobId job, Millis pause_ms) {
  return context_.timer.afterDelay(pause_ms * kj::MILLISECONDS)
      .then([this, job] { return round(job); })
      .then([this, job] { return rounds(job, kReachEachMs); });
}

kj::Promise<void> ReachDesk::round(JobId job) {
  auto members = std::make_shared<Members>();
  for (const NodeId node : watches_.at(job).nodes) {
    const AgentLinks::Link* link = links_.find(node);
    members->push_back(link == nullptr ? Member{node}
                                       : Member{node, link->number, link->figures.ip});
  }
  auto meeting = kj::heapArrayBuilder<kj::Promise<void>>(members->size());
  for (Member& member : *members) meeting.add(meet(member));
  return kj::joinPromises(meeting.finish())
      .then([this, job, members] {
        auto reaching = kj::heapArrayBuilder<kj::Promise<void>>(members->size());
        for (size_t i = 0; i < members->size(); ++i) reaching.add(reach(job, *members, i));
        return kj::joinPromises(reaching.finish());
      })
      .then([this, job] {
        Watch& watch = watches_.at(job);
        tried(watch);
        show(job, watch, true);
      })
      .attach(std::move(members));
}

kj::Promise<void> ReachDesk::meet(Member& member) {
  AgentLinks::Link* link = links_.find(member.node);
  if (link == nullptr || member.ip.empty()) return kj::READY_NOW;
  auto request = link->agent.meetRequest();
  request.setEpoch(context_.options.epoch);
  request.setNonce(context_.options.nonce);
  return context_.timer.timeoutAfter(kMeetMaxMs * kj::MILLISECONDS, request.send().dropPipeline())
      .then(
          [&member](capnp::Response<wire::Agent::MeetResults>&& answer) {
            member.port = answer.getPort();
            member.greeting = text_of(answer.getGreeting(), kGreetingMax);
          },
          [](kj::Exception&&) {});
}

kj::Promise<void> ReachDesk::reach(JobId job, const Members& members, size_t i) {
  const Member& from = members[i];
  std::vector<const Member*> tried;
  for (const size_t other : core::tried_by(i, members.size()))
    if (members[other].port != 0) tried.push_back(&members[other]);
  AgentLinks::Link* link = links_.find(from.node);
  if (from.port == 0 || tried.empty() || link == nullptr) return kj::READY_NOW;
  auto request = link->agent.reachRequest();
  request.setEpoch(context_.options.epoch);
  request.setNonce(context_.options.nonce);
  auto peers = request.initPeers(static_cast<unsigned>(tried.size()));
  for (unsigned k = 0; k < peers.size(); ++k) {
    peers[k].setIp(tried[k]->ip);
    peers[k].setPort(tried[k]->port);
    peers[k].setGreeting(tried[k]->greeting);
  }
  return context_.timer.timeoutAfter(kReachMaxMs * kj::MILLISECONDS, request.send().dropPipeline())
      .then(
          [this, job, &from, tried](capnp::Response<wire::Agent::ReachResults>&& answer) {
            heard(job, from, tried, answer.getFailures());
          },
          [](kj::Exception&&) {});
}

void ReachDesk::heard(JobId job, const Member& from, const std::vector<const Member*>& tried,
                      capnp::List<capnp::Text>::Reader failures) {
  if (!links_.current(from.node, from.link) || failures.size() != tried.size()) return;
  Watch& watch = watches_.at(job);
  const auto note = [this, &watch](const Member& one) {
    watch.ends[one.node] = {links_.find(one.node)->node, one.ip};
  };
  note(from);
  std::vector<core::Reach::Tried> found;
  for (unsigned k = 0; k < failures.size(); ++k) {
    if (!links_.current(tried[k]->node, tried[k]->link)) continue;
    note(*tried[k]);
    found.push_back({tried[k]->node, text_of(failures[k], kReachWhyMax)});
  }
  watch.reach.heard(from.node, found);
}

void ReachDesk::show(JobId job, Watch& watch, bool tried) {
  std::vector<core::Unreached> pairs;
  for (const auto& [pair, why] : watch.reach.failed())
    pairs.push_back({watch.ends.at(pair.first), watch.ends.at(pair.second), why});
  if (pairs == watch.shown) return;
  if (!pairs.empty())
    log::warn("job {}: {}", watch.name, core::reach_text(pairs));
  else if (tried)
    log::info("all nodes of job {} reach each other again", watch.name);
  watch.shown = std::move(pairs);
  if (!context_.options.show_unreached) return;
  if (watch.shown.empty() && !tried)
    context_.options.show_unreached(job, std::nullopt);
  else
    context_.options.show_unreached(job, watch.shown);
}

}  // namespace muster::coordinator
