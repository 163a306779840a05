#include "core/job/fold/hearing.hpp"

#include <algorithm>
#include <utility>

namespace muster::core {

Hearing Hearing::all_known() {
  Hearing hearing;
  hearing.all_known_ = true;
  hearing.look_again_ = false;
  return hearing;
}

bool Hearing::knows(const Job& job, const std::set<NodeId>& nodes, const std::set<PodKey>& ending) {
  if (all_known_) return true;
  const auto& open = job.state().open;
  bool known = true;
  for (NodeId node : nodes) {
    auto [it, fresh] = asked_.try_emplace(node);
    Question& question = it->second;
    if (fresh) {
      question.number = ++last_number_;
      to_ask_.push_back({node, question.number});
    }
    bool heard = question.unreported &&
                 std::none_of(question.unreported->begin(), question.unreported->end(),
                              [&open, &ending, node = node](PodKey key) {
                                auto pod = open.find(key);
                                return pod != open.end() && pod->second.node == node &&
                                       !ending.contains(key);
                              });
    known = known && heard;
  }
  return known;
}

void Hearing::answered(const NodeHeard& answer) {
  auto it = asked_.find(answer.node);
  if (it != asked_.end() && it->second.number == answer.question)
    it->second.unreported = answer.ended;
}

std::vector<AskNodes::One> Hearing::settle(bool waits) {
  if (!waits) asked_.clear();
  look_again_ = waits;
  return std::exchange(to_ask_, {});
}

}  // namespace muster::core
