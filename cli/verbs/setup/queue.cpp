// muster queue: lists queues, and creates, changes and deletes them without a manifest.
#include "base/text/comma_list.hpp"
#include "base/text/yaml.hpp"
#include "cli/verbs/show/get.hpp"
#include "cli/verbs/verb.hpp"
#include "cli/verbs/words.hpp"
#include "client/connect/discovery.hpp"
#include "client/connect/objects.hpp"
#include "client/inputs/resources.hpp"
#include "client/terminal/exit_codes.hpp"
#include "client/terminal/text.hpp"
#include "core/spec/values/duration.hpp"

#include <charconv>
#include <functional>
#include <iostream>
#include <memory>
#include <string>
#include <vector>

namespace muster::cli {

struct QueueOptions {
  Target target;
  std::string name;  // empty: list all
  bool removes = false;
  std::vector<std::function<void(Json& spec)>> changes;
};
int execute(const QueueOptions& options);

namespace {

constexpr const char* kNoneWord = "none";

// Removes a member of an object, and the object itself once it is empty.
void drop(Json& spec, const char* part, const char* member) {
  if (!spec.contains(part)) return;
  if (member != nullptr) spec[part].erase(member);
  if (member == nullptr || spec[part].empty()) spec.erase(part);
}

// A whole number, also a negative one.
std::optional<int64_t> signed_number(const std::string& word) {
  int64_t number = 0;
  const char* const end = word.data() + word.size();
  const auto [at, wrong] = std::from_chars(word.data(), end, number);
  return wrong == std::errc() && at == end ? std::optional(number) : std::nullopt;
}

// "a=1" pairs that replace a map; `none` removes it.
std::optional<Usage> read_map(const char* flag, const std::vector<std::string>& words,
                              const char* member, QueueOptions& o) {
  if (words.empty()) return std::nullopt;
  Json map = Json::object();
  for (const std::string& word : words) {
    for (const std::string& one : split_at_commas(word)) {
      if (one == kNoneWord) continue;
      const size_t equals = one.find('=');
      if (equals == std::string::npos || equals == 0)
        return Usage{std::string(flag) + ": `" + one + "`: must be NAME=VALUE, or none"};
      map[one.substr(0, equals)] = one.substr(equals + 1);
    }
  }
  o.changes.push_back([member, map](Json& spec) {
    if (map.empty())
      spec.erase(member);
    else
      spec[member] = map;
  });
  return std::nullopt;
}

// "a=1" pairs that are set in a map, of which the rest stays; "a=none" removes one, `none` all.
// `read`: nullopt: the value is wrong. `form`: what pairs look like.
std::optional<Usage> read_pairs(const char* flag, const std::vector<std::string>& words,
                                const char* member, const char* form,
                                const std::function<std::optional<Json>(const std::string&)>& read,
                                QueueOptions& o) {
  for (const std::string& word : words)
    for (const std::string& one : split_at_commas(word)) {
      if (one == kNoneWord) {
        o.changes.push_back([member](Json& spec) { drop(spec, member, nullptr); });
        continue;
      }
      const size_t equals = one.find('=');
      const bool pair = equals != std::string::npos && equals > 0;
      const std::string name = one.substr(0, equals), text = pair ? one.substr(equals + 1) : "";
      const bool none = text == kNoneWord;
      const std::optional<Json> value = pair && !none ? read(text) : std::nullopt;
      if (!value && !none)
        return Usage{std::string(flag) + ": `" + one + "`: must be " + form + " or none"};
      o.changes.push_back([member, name, value](Json& spec) {
        if (!value) return drop(spec, member, name.c_str());
        spec[member][name] = *value;
      });
    }
  return std::nullopt;
}

std::optional<Usage> read_limits(const char* flag, const std::vector<std::string>& words,
                                 const char* member, QueueOptions& o) {
  return read_pairs(
      flag, words, member, "NAME=VALUE, NAME=none",
      [](const std::string& text) { return std::optional<Json>(text); }, o);
}

std::optional<Usage> read_weights(const char* flag, const std::vector<std::string>& words,
                                  const char* member, QueueOptions& o) {
  return read_pairs(
      flag, words, member, "USER=N, N a whole number, or USER=none",
      [](const std::string& text) {
        const auto number = signed_number(text);
        return number ? std::optional<Json>(*number) : std::nullopt;
      },
      o);
}

// "a,b" replaces a list; `none` removes it.
void read_list(const std::vector<std::string>& words, const char* member, QueueOptions& o) {
  if (words.empty()) return;
  Json list = Json::array();
  for (const std::string& word : words)
    for (const std::string& one : split_at_commas(word))
      if (one != kNoneWord) list.push_back(one);
  o.changes.push_back([member, list](Json& spec) {
    if (list.empty())
      spec.erase(member);
    else
      spec[member] = list;
  });
}

// A whole number, or `none`.
std::optional<Usage> read_number(const char* flag, const std::string& word, const char* part,
                                 const char* member, QueueOptions& o) {
  if (word.empty()) return std::nullopt;
  const auto number = signed_number(word);
  if (!number && word != kNoneWord)
    return Usage{std::string(flag) + ": `" + word + "`: must be a whole number, or none"};
  o.changes.push_back([part, member, number](Json& spec) {
    if (!number) return drop(spec, part, member);
    (member ? spec[part][member] : spec[part]) = *number;
  });
  return std::nullopt;
}

std::optional<Usage> read_span(const char* flag, const std::string& word, const char* member,
                               QueueOptions& o) {
  if (word.empty()) return std::nullopt;
  const bool none = word == kNoneWord;
  ResourceWishes wishes;
  if (!none && !read_time(word, wishes))
    return Usage{std::string(flag) + ": `" + word +
                 "`: must be such as 90m, 12h or 1:30:00, or none"};
  o.changes.push_back([member, none, span_ms = wishes.time_s * 1000](Json& spec) {
    if (none) return drop(spec, "timeLimit", member);
    spec["timeLimit"][member] = core::duration_text(span_ms);
  });
  return std::nullopt;
}

// "a,b", `none` or `all`.
void read_preemption(const std::string& word, QueueOptions& o) {
  if (word.empty()) return;
  o.changes.push_back([word](Json& spec) {
    if (word == "all") return drop(spec, "preemption", nullptr);
    spec["preemption"]["queues"] = word == kNoneWord ? Json::array() : Json(split_at_commas(word));
  });
}

int done_with(const Result<Response>& answer, const std::string& name, const char* what) {
  if (!answer || !answer->ok()) return fail(answer ? refusal(*answer) : answer.error());
  print_warnings(*answer);
  std::cout << kind_name(Kind::queue) << "/" << name << " " << what << std::endl;
  return kDone;
}

}  // namespace

int execute(const QueueOptions& options) {
  if (options.name.empty()) {
    GetOptions get;
    get.target = options.target;
    get.kind = Kind::queue;
    get.output = Output::wide;
    const int code = execute(get);
    const auto client = connect(options.target);
    const auto own = object(*client, object_path(Kind::queue, "", kDefaultQueue));
    if (code == kDone && !own && own.error().code == Errc::not_found)
      std::cerr << "queue default has no rules: every user may use all nodes without limits\n";
    return code;
  }
  const auto client = connect(options.target);
  const std::string path = object_path(Kind::queue, "", options.name);
  if (options.removes) return done_with(client->remove(path, ""), options.name, "deleted");
  auto there = object(*client, path);
  if (!there && there.error().code != Errc::not_found) return fail(there.error());
  if (options.changes.empty()) {
    if (!there && options.name == kDefaultQueue) {
      std::cout << "{}\n" << std::flush;  // it exists, and says nothing
      return kDone;
    }
    if (!there) return fail(there.error());
    std::cout << to_yaml(at(*there, {"spec"})) << std::flush;
    return kDone;
  }
  Json queue = there ? *there
                     : Json{{"apiVersion", "muster.dev/v1"},
                            {"kind", "Queue"},
                            {"metadata", {{"name", options.name}}}};
  if (!queue.contains("spec") || !queue["spec"].is_object()) queue["spec"] = Json::object();
  for (const auto& change : options.changes) change(queue["spec"]);
  return there ? done_with(client->replace(path, dumped(queue)), options.name, "changed")
               : done_with(client->post(object_path(Kind::queue, ""), dumped(queue)), options.name,
                           "created");
}

namespace {

constexpr char kQueueFooter[] =
    "A flag replaces what the queue says, and `none` removes it; limits and the weights of users "
    "change one by one. Only operators change queues; everybody sees them. A job is put into a "
    "queue by `muster submit --queue NAME`; otherwise it is in `default`, which always exists.\n"
    "Examples:\n  muster queue\n"
    "  muster queue short --max-time 1h --weight 3 --user-limit pods=64\n"
    "  muster queue gpu --nodes gpu=a100 --groups ml --max-priority 10\n"
    "  muster queue gpu --delete";

}  // namespace

Verb queue_verb() {
  struct Words {
    QueueOptions o;
    std::vector<std::string> nodes, users, groups, limits, user_limits, user_weights;
    std::string priority, max_priority, time, max_time, weight, preempts;
  };
  auto w = std::make_shared<Words>();
  return {
      .title = {"Nodes", "queue", "List, create, change and delete queues"},
      .rows = {{"name", "NAME",
                "Queue to show or, with flags, to create or change (default: list all)",
                &w->o.name},
               {"--nodes", "LABEL=VALUE", "Only nodes with this label; repeatable", &w->nodes},
               {"--users", "U,U...", "Users who may use the queue (default: everybody)", &w->users},
               {"--groups", "G,G...", "Groups whose members may use the queue", &w->groups},
               {"--priority", "N", "Priority of pods whose template has none", &w->priority},
               {"--max-priority", "N", "Highest priority of users' pods", &w->max_priority},
               {"--time", "T", "Time limit of pods that have none, such as 1h", &w->time},
               {"--max-time", "T", "Longest time limit of pods, such as 12h", &w->max_time},
               {"--limit", "RESOURCE=N",
                "Limit for all pods of the queue: pods, jobs, cpu, memory or a device, such as "
                "pods=100, or pods=none; repeatable, and limits that are not named stay",
                &w->limits},
               {"--user-limit", "RESOURCE=N", "Likewise, for the pods of each user",
                &w->user_limits},
               {"--weight", "N", "Share of the queue among queues whose jobs wait", &w->weight},
               {"--user-weight", "USER=N",
                "Share of a user among those whose jobs wait in the queue (default: 1), or "
                "USER=none; repeatable, and users who are not named keep theirs",
                &w->user_weights},
               {"--preempts", "Q,Q...",
                "Queues whose pods of lower priority its pods may preempt, or all (the default) or "
                "none",
                &w->preempts},
               {"--delete", "", "Delete the queue; jobs that name it wait", &w->o.removes}},
      .asks = {&w->o.target, ""},
      .footer = kQueueFooter,
      .finish = [w](const Given& given) -> Judged {
        QueueOptions& o = w->o;
        if (auto empty = check_filled(given, {{"--nodes", w->nodes},
                                              {"--users", w->users},
                                              {"--groups", w->groups},
                                              {"--limit", w->limits},
                                              {"--user-limit", w->user_limits},
                                              {"--priority", {w->priority}},
                                              {"--max-priority", {w->max_priority}},
                                              {"--time", {w->time}},
                                              {"--max-time", {w->max_time}},
                                              {"--weight", {w->weight}},
                                              {"--user-weight", w->user_weights},
                                              {"--preempts", {w->preempts}}}))
          return *empty;
        for (const auto& wrong :
             {read_map("--nodes", w->nodes, "nodeSelector", o),
              read_limits("--limit", w->limits, "limits", o),
              read_limits("--user-limit", w->user_limits, "userLimits", o),
              read_number("--priority", w->priority, "priority", "default", o),
              read_number("--max-priority", w->max_priority, "priority", "max", o),
              read_number("--weight", w->weight, "weight", nullptr, o),
              read_weights("--user-weight", w->user_weights, "userWeights", o),
              read_span("--time", w->time, "default", o),
              read_span("--max-time", w->max_time, "max", o)})
          if (wrong) return *wrong;
        read_list(w->users, "users", o);
        read_list(w->groups, "groups", o);
        read_preemption(w->preempts, o);
        if (o.name.empty() && (o.removes || !o.changes.empty()))
          return Usage{"the name of the queue is missing"};
        if (o.removes && !o.changes.empty())
          return Usage{"--delete goes without flags that change the queue"};
        return o;
      }};
}

}  // namespace muster::cli
