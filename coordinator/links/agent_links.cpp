#include "coordinator/links/agent_links.hpp"

#include "actors/messages.hpp"
#include "base/log.hpp"
#include "coordinator/links/wire_convert.hpp"
#include "coordinator/links/wire_text.hpp"
#include "core/node/values.hpp"

#include <caf/send.hpp>

#include <algorithm>
#include <utility>

namespace muster::coordinator {

namespace {

constexpr unsigned kListsInFlight = 8;  // lists of launches or kills that an agent has not accepted

Error not_connected() {
  return {Errc::unavailable, "the node of this pod is not connected", {}};
}

void write_name(wire::LogName::Builder out, const api::LogSource& log) {
  out.setJobUid(log.job_uid);
  out.setPodName(log.pod_name);
}

}  // namespace

void write_launch(wire::Launch::Builder out, const Order& launch) {
  write_pod(out.initPod(), launch.pod);
  out.setGeneration(launch.object->meta.generation);
}

void AgentLinks::connect(NodeId node, Link link) {
  links_.erase(node);
  links_.emplace(node, std::move(link));
}

std::optional<uint64_t> AgentLinks::disconnect(NodeId node) {
  const auto it = links_.find(node);
  if (it == links_.end()) return std::nullopt;
  const uint64_t number = it->second.number;
  links_.erase(it);
  return number;
}

bool AgentLinks::current(NodeId node, uint64_t number) const {
  const Link* link = find(node);
  return link != nullptr && link->number == number;
}

const AgentLinks::Link* AgentLinks::find(NodeId node) const {
  const auto it = links_.find(node);
  return it == links_.end() ? nullptr : &it->second;
}

AgentLinks::Link* AgentLinks::find(NodeId node) {
  const auto it = links_.find(node);
  return it == links_.end() ? nullptr : &it->second;
}

// Distributes orders to their nodes.
void AgentLinks::deliver(std::vector<Order> orders) {
  const bool first = due_.empty();
  for (Order& o : orders) {
    auto it = links_.find(o.node);
    if (it == links_.end() || (o.what == Order::What::launch && o.link != it->second.number))
      continue;  // its next registration derives the order again
    it->second.orders.push_back(std::move(o));
    due_.insert(it->first);
  }
  if (!first || due_.empty()) return;
  context_.tasks.add(kj::evalLast([this] {
    for (NodeId node : std::exchange(due_, {})) flush(node);
  }));
}

std::vector<Order> AgentLinks::take_launches(NodeId node, uint64_t number) {
  std::vector<Order> taken;
  if (!current(node, number)) return taken;
  Link& link = links_.at(node);
  if (!link.takes.launches || link.in_flight > 0) return taken;
  const auto end = std::find_if(link.orders.begin(), link.orders.end(), [&link](const Order& o) {
    return o.what != Order::What::launch || o.by_call ||
           !link.templates.contains({o.pod.job, o.object->meta.generation});
  });
  const auto count = std::min<ptrdiff_t>(end - link.orders.begin(), core::node::kListMax);
  taken.assign(std::make_move_iterator(link.orders.begin()),
               std::make_move_iterator(link.orders.begin() + count));
  link.orders.erase(link.orders.begin(), link.orders.begin() + count);
  return taken;
}

void AgentLinks::flush(NodeId node) {
  auto it = links_.find(node);
  if (it == links_.end()) return;
  Link& link = it->second;
  size_t sent = 0;
  while (sent < link.orders.size() && link.in_flight < kListsInFlight) {
    const Order::What what = link.orders[sent].what;  // runs of one kind, in order
    size_t end = sent;
    while (end < link.orders.size() && end - sent < core::node::kListMax &&
           link.orders[end].what == what)
      ++end;
    kj::ArrayPtr<const Order> run(link.orders.data() + sent, link.orders.data() + end);
    auto done = send(link, what, run);
    ++link.in_flight;
    context_.tasks.add(done.then([this, node, number = link.number] { accepted(node, number); },
                                 [this, node, number = link.number](kj::Exception&& e) {
                                   warn_of(e, node, "rejected a request");
                                   accepted(node, number);
                                 }));
    sent = end;
  }
  link.orders.erase(link.orders.begin(), link.orders.begin() + static_cast<ptrdiff_t>(sent));
}

void AgentLinks::accepted(NodeId node, uint64_t number) {
  if (!current(node, number)) return;
  Link& link = links_.at(node);
  --link.in_flight;
  if (!link.orders.empty()) flush(node);
}

kj::Promise<void> AgentLinks::send(Link& link, Order::What what, kj::ArrayPtr<const Order> run) {
  switch (what) {
    case Order::What::launch:
      return send_launches(link, run);
    case Order::What::kill:
      return send_kills(link, run);
    case Order::What::limit:
      return send_limits(link, run);
  }
  KJ_UNREACHABLE;
}

kj::Promise<void> AgentLinks::send_launches(Link& link, kj::ArrayPtr<const Order> run) {
  std::vector<const Order*> fresh;
  for (const Order& o : run)
    if (link.templates.emplace(o.pod.job, o.object->meta.generation).second) fresh.push_back(&o);
  auto request = link.agent.launchRequest(
      capnp::MessageSize{64 + kSealWords + 6 * run.size() + 256 * fresh.size(), 1});
  request.setEpoch(context_.options.epoch);
  request.setNonce(context_.options.nonce);
  context_.tell(request);
  auto templates = request.initTemplates(static_cast<unsigned>(fresh.size()));
  for (unsigned i = 0; i < fresh.size(); ++i) write(templates[i], link, *fresh[i]);
  auto pods = request.initPods(static_cast<unsigned>(run.size()));
  for (unsigned i = 0; i < run.size(); ++i) write_launch(pods[i], run[i]);
  return request.send().ignoreResult();
}

void AgentLinks::write(wire::PodTemplate::Builder out, const Link& link,
                       const Order& launch) const {
  const auto& options = context_.options;
  auto job = template_of(launch.pod.job, *launch.object, link.figures, options.image_runtime);
  write_template(out, job, link.takes.templates);
  if (!options.permit_key) return;
  if (const auto permit =
          permit_for(options.cluster_id, link.node, *launch.object, std::move(job), wall_now()))
    write_signed(out, *permit, *options.permit_key);
}

kj::Promise<void> AgentLinks::send_kills(Link& link, kj::ArrayPtr<const Order> run) {
  auto request = link.agent.killRequest(capnp::MessageSize{32 + 8 * run.size(), 1});
  request.setEpoch(context_.options.epoch);
  request.setNonce(context_.options.nonce);
  auto kills = request.initKills(static_cast<unsigned>(run.size()));
  for (unsigned i = 0; i < run.size(); ++i) {
    write_pod(kills[i].initPod(), run[i].pod);
    kills[i].setGraceMs(run[i].ms);
  }
  return request.send().ignoreResult();
}

// With an agent of an earlier version, running pods keep their limits.
kj::Promise<void> AgentLinks::send_limits(Link& link, kj::ArrayPtr<const Order> run) {
  auto request = link.agent.limitRequest(capnp::MessageSize{32 + 8 * run.size(), 1});
  request.setEpoch(context_.options.epoch);
  request.setNonce(context_.options.nonce);
  auto limits = request.initLimits(static_cast<unsigned>(run.size()));
  for (unsigned i = 0; i < run.size(); ++i) {
    write_pod(limits[i].initPod(), run[i].pod);
    limits[i].setLimitMs(run[i].ms);
  }
  return request.send().ignoreResult().catch_([](kj::Exception&& e) {
    if (e.getType() != kj::Exception::Type::UNIMPLEMENTED) kj::throwFatalException(kj::mv(e));
  });
}

// A disconnected agent is asked again once it reconnects.
void AgentLinks::ask_ended(NodeId node, JobId job, uint64_t question) {
  auto it = links_.find(node);
  if (it == links_.end()) return;
  auto request = it->second.agent.unackedRequest();
  request.setJob(job);
  auto answered = [this, node, job, question, number = it->second.number](auto&& answer) {
    if (!current(node, number)) return;
    actors::JobHears hears{job, {node, question, {}}};
    for (auto pod : answer.getEnded()) hears.heard.ended.insert(read_pod(pod).key());
    caf::anon_send(context_.registry, std::move(hears));
  };
  context_.tasks.add(request.send().then(std::move(answered), [this, node](kj::Exception&& e) {
    warn_of(e, node, "did not report which pods have ended");
  }));
}

// The link of the agent that has a log.
AgentLinks::Link* AgentLinks::link_of(const api::LogSource& log) {
  auto it = links_.find(log.node);
  // A node that was lost and came back has a new id but the same files.
  if (it == links_.end() && !log.node_name.empty())
    it = std::ranges::find_if(links_,
                              [&log](const auto& one) { return one.second.node == log.node_name; });
  return it == links_.end() ? nullptr : &it->second;
}

void AgentLinks::ask_log(const api::LogRequest& ask,
                         const std::function<void(Result<api::LogChunk>)>& done) {
  Link* const link = link_of(ask);
  if (link == nullptr) return done(not_connected());
  auto request = link->agent.readLogRequest();
  write_pod(request.initPod(), ask.pod);
  request.setContainer(ask.container);
  request.setStream(ask.stderr_stream ? wire::LogStream::STDERR : wire::LogStream::STDOUT);
  request.setOffset(ask.offset);
  request.setLimit(ask.limit);
  request.setRun(ask.run);
  request.setTimes(ask.times);
  write_name(request.initTemplate(), ask);
  context_.tasks.add(request.send().then(
      [done](auto&& response) {
        api::LogChunk chunk;
        chunk.found = response.getFound();
        chunk.data.assign(reinterpret_cast<const char*>(response.getData().begin()),
                          response.getData().size());
        chunk.offset = response.getOffset();
        chunk.size = response.getSize();
        chunk.running = response.getRunning();
        for (auto mark : response.getMarks())
          chunk.marks.push_back({static_cast<int64_t>(mark.getOffset()), mark.getAtMs()});
        done(std::move(chunk));
      },
      [done](kj::Exception&& e) { done(no_answer(e)); }));
}

void AgentLinks::find_log(const api::LogSearch& ask,
                          const std::function<void(Result<api::LogBegins>)>& done) {
  Link* const link = link_of(ask);
  if (link == nullptr) return done(not_connected());
  auto request = link->agent.findLogRequest();
  request.setContainer(ask.container);
  request.setStdout(ask.out);
  request.setStderr(ask.err);
  request.setRun(ask.run);
  request.setLastLines(ask.last_lines.value_or(-1));
  request.setSinceMs(ask.since);
  write_name(request.initTemplate(), ask);
  context_.tasks.add(request.send().then(
      [done](auto&& response) {
        done(api::LogBegins{static_cast<int64_t>(response.getStdout()),
                            static_cast<int64_t>(response.getStderr())});
      },
      [done](kj::Exception&& e) {
        if (e.getType() == kj::Exception::Type::UNIMPLEMENTED)
          return done(api::LogBegins{.known = false});
        done(no_answer(e));
      }));
}

void AgentLinks::warn_of(const kj::Exception& e, NodeId node, const char* what) {
  if (e.getType() == kj::Exception::Type::DISCONNECTED) return;
  if (const auto more = refused_orders_.due(boot_now()))
    log::warn("n{} {}: {}{}", node, what, short_text(e), *more);
}

}  // namespace muster::coordinator
