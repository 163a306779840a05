// The grammar of the verbs about access from other machines: token, node.
#include "cli/grammar/parser.hpp"
#include "core/cluster/nodes/claims.hpp"
#include "core/spec/values/duration.hpp"
#include "core/trust.hpp"

#include <algorithm>
#include <charconv>
#include <cstring>
#include <utility>

namespace muster::cli {
namespace {

using AccessVerb = AccessOptions::What;

struct ClaimWords {
  std::vector<std::string> labels, resources;
  std::string slots_max;

  bool empty() const { return labels.empty() && resources.empty() && slots_max.empty(); }
};

void add_claims(CLI::App& app, ClaimWords& w) {
  app.add_option("--label", w.labels,
                 "Label that the node may claim; * stands for anything (gpu=*); repeatable")
      ->type_name("KEY=VALUE");
  app.add_option("--resource", w.resources,
                 "Resource that the node may claim, and how much of it (nvidia.com/gpu=4); "
                 "repeatable")
      ->type_name("NAME=MAX");
  app.add_option("--slots-max", w.slots_max,
                 "Slots that the node may claim (default: " +
                     std::to_string(core::NodeClaims::kSlots) + ")")
      ->type_name("N");
}

// A whole number; -1: it is none.
int64_t number_in(std::string_view text) {
  int64_t number = -1;
  const auto read = std::from_chars(text.data(), text.data() + text.size(), number);
  return read.ec == std::errc{} && read.ptr == text.data() + text.size() ? number : -1;
}

Result<core::NodeClaims> read_claims(const ClaimWords& w) {
  core::NodeClaims claims;
  claims.labels = w.labels;
  if (!w.slots_max.empty()) {
    const int64_t slots = number_in(w.slots_max);
    claims.slots_max = static_cast<uint32_t>(std::clamp<int64_t>(slots, 0, UINT32_MAX));
  }
  for (const std::string& resource : w.resources) {
    const size_t equals = resource.find('=');
    const int64_t most = equals == resource.npos ? -1 : number_in(resource.substr(equals + 1));
    if (most < 0) return invalid("--resource: `" + resource + "`: must be NAME=MAX");
    claims.resources_max[resource.substr(0, equals)] = most;
  }
  if (std::string wrong = core::claims_error(claims); !wrong.empty()) {
    // The names of the flags, which a body's fields resemble.
    for (const auto& [field, flag] :
         {std::pair{"labels: ", "--label: "}, std::pair{"slotsMax: ", "--slots-max: "},
          std::pair{"resources: ", "--resource: "}})
      if (wrong.starts_with(field)) wrong.replace(0, std::strlen(field), flag);
    return invalid(wrong);
  }
  return claims;
}

struct TokenWords {
  std::string what, id, node, user, ttl, out;
  ClaimWords claims;
};

Judged read_token_words(const TokenWords& w, const Target& target) {
  AccessOptions o;
  o.target = target;
  const bool creates = w.what == "create";
  if (!creates && !(w.node.empty() && w.user.empty() && w.ttl.empty() && w.out.empty()))
    return Usage{"--node, --user, --ttl and --out are only for `muster token create`"};
  if (w.what == "revoke" && w.id.empty())
    return Usage{"revoke which token? muster token revoke ID; `muster token list` lists them"};
  if (w.what != "revoke" && !w.id.empty())
    return Usage{"`" + w.id + "`: only `muster token revoke` takes an ID"};
  if (!w.node.empty() && !w.user.empty()) return Usage{"--node and --user are mutually exclusive"};
  if (w.node.empty() && !w.claims.empty())
    return Usage{"--label, --resource and --slots-max are only for `muster token create --node`"};
  auto claims = read_claims(w.claims);
  if (!claims) return Usage{claims.error().message};
  o.claims = std::move(*claims);
  o.what = creates              ? AccessVerb::create
           : w.what == "list"   ? AccessVerb::list
           : w.what == "revoke" ? AccessVerb::revoke
                                : AccessVerb::credential;
  o.of_node = !w.node.empty();
  o.subject = w.what == "revoke" ? w.id : o.of_node ? w.node : w.user;
  o.out = w.out;
  if (!w.ttl.empty()) {
    auto life = core::parse_duration(w.ttl);
    if (!life) return Usage{"--ttl: " + life.error().message};
    const Millis most = o.of_node ? core::kNodeTokenLifeMax : core::kUserTokenLifeMax;
    if (*life < core::kTokenLifeMin || *life > most)
      return Usage{"--ttl: must be 1m to " + std::to_string(most / 86'400'000) + "d"};
    o.life_ms = *life;
  }
  return o;
}

Verb add_token(CLI::App& root) {
  auto w = std::make_shared<TokenWords>();
  Verb verb = new_verb(root, "Access", "token",
                       "Create, list and revoke tokens for nodes and users on other machines");
  verb.app
      ->add_option("what", w->what,
                   "create, list or revoke; credential prints an ExecCredential for kubectl")
      ->type_name("create | list | revoke ID | credential")
      ->check(one_of({"create", "list", "revoke", "credential"}))
      ->required();
  verb.app->add_option("id", w->id)->type_name("ID")->group("");
  verb.app->add_option("--node", w->node, "Node whose agent may join with this token, once")
      ->type_name("NAME");
  verb.app->add_option("--user", w->user, "User that the token authenticates (default: you)")
      ->type_name("NAME");
  verb.app
      ->add_option(
          "--ttl", w->ttl,
          "Lifetime, at least 1m (nodes: 1h by default, at most 7d; users: 12h, at most 30d)")
      ->type_name("T");
  verb.app
      ->add_option("--out", w->out,
                   "Write the token to this file (mode 0600) instead of printing it")
      ->type_name("F");
  add_claims(*verb.app, w->claims);
  add_target(verb, "");
  verb.app->footer(
      "Examples:\n  muster token create --node c01 --out c01.token\n"
      "  muster token create --node c02 --label 'gpu=*' --resource nvidia.com/gpu=4 --out "
      "c02.token\n"
      "  muster token create --out ~/.config/muster/token\n"
      "  muster token list\n  muster token revoke 0123456789abcdef\n"
      "What a node claims beyond its token is shown under claimed.muster.dev/, or cut off.\n"
      "A token is shown only once. Anyone who holds it can use it until it expires or is revoked.\n"
      "Where the coordinator runs with --munge, users log in without one.");
  verb.finish = [w](const Settings&, const Target& target) -> Judged {
    return read_token_words(*w, target);
  };
  return verb;
}

struct NodeWords {
  std::string what, name;
  ClaimWords claims;
  bool freeze = false;
};

Judged read_node_words(const NodeWords& w, const Target& target) {
  AccessOptions o;
  o.target = target;
  o.subject = w.name;
  if (w.what == "revoke") {
    if (w.freeze || !w.claims.empty())
      return Usage{
          "--label, --resource, --slots-max and --freeze are only for `muster node claims`"};
    o.what = AccessVerb::revoke_node;
    return o;
  }
  if (w.freeze && !w.claims.empty())
    return Usage{"--freeze allows what the node has now, and so excludes the other flags"};
  auto claims = read_claims(w.claims);
  if (!claims) return Usage{claims.error().message};
  o.claims = std::move(*claims);
  o.freeze = w.freeze;
  o.what = w.freeze || !w.claims.empty() ? AccessVerb::allow : AccessVerb::show_claims;
  return o;
}

Verb add_node(CLI::App& root) {
  auto w = std::make_shared<NodeWords>();
  Verb verb =
      new_verb(root, "Access", "node", "Decide what a node may claim, or revoke its certificates");
  verb.app
      ->add_option("what", w->what,
                   "claims: show or change what its agent may claim; revoke: reject all its "
                   "certificates and tokens from now on")
      ->type_name("claims NODE | revoke NODE")
      ->check(one_of({"claims", "revoke"}))
      ->required();
  verb.app->add_option("node", w->name)->type_name("NODE")->group("")->required();
  add_claims(*verb.app, w->claims);
  verb.app->add_flag("--freeze", w->freeze,
                     "It may claim the labels, resources and slots that it has now, and no others");
  add_target(verb, "");
  verb.app->footer(
      "Examples:\n  muster node claims c01\n"
      "  muster node claims c01 --label 'gpu=*' --label site/rack=r7 --slots-max 64\n"
      "  muster node claims c01 --freeze\n  muster node revoke c01\n"
      "The flags of `claims` replace what was allowed before. What the agent of another machine "
      "claims\nbeyond it is shown under claimed.muster.dev/, or cut off. `kubectl label` sets "
      "labels "
      "of any node.\n"
      "A node that is revoked is disconnected at once, and its pods are treated as those of a node "
      "that\nhas stopped responding. A new join token lets it back in.");
  verb.finish = [w](const Settings&, const Target& target) -> Judged {
    return read_node_words(*w, target);
  };
  return verb;
}

}  // namespace

std::vector<Verb> access_verbs(CLI::App& root) {
  return {add_token(root), add_node(root)};
}

}  // namespace muster::cli
