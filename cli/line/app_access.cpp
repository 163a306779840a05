// The grammar of the verbs about access from other machines: token, node.
#include "cli/line/parser.hpp"
#include "core/spec/values/duration.hpp"
#include "core/trust.hpp"

namespace muster::cli {
namespace {

using AccessVerb = AccessOptions::What;

struct TokenWords {
  std::string what, id, node, user, ttl, out;
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
  add_target(verb, "");
  verb.app->footer(
      "Examples:\n  muster token create --node c01 --out c01.token\n"
      "  muster token create --out ~/.config/muster/token\n"
      "  muster token list\n  muster token revoke 0123456789abcdef\n"
      "A token is shown only once. Anyone who holds it can use it until it expires or is revoked.\n"
      "Where the coordinator runs with --munge, users log in without one.");
  verb.finish = [w](const Settings&, const Target& target) -> Judged {
    return read_token_words(*w, target);
  };
  return verb;
}

Verb add_node(CLI::App& root) {
  struct Words {
    std::string what, name;
  };
  auto w = std::make_shared<Words>();
  Verb verb = new_verb(root, "Access", "node", "Revoke the certificates of a node");
  verb.app
      ->add_option("what", w->what, "revoke: reject all its certificates and tokens from now on")
      ->type_name("revoke NODE")
      ->check(one_of({"revoke"}))
      ->required();
  verb.app->add_option("node", w->name)->type_name("NODE")->group("")->required();
  add_target(verb, "");
  verb.app->footer(
      "Example:\n  muster node revoke c01\n"
      "Its connection is closed at once, and its pods are treated as those of a node that has "
      "stopped\nresponding. A new join token lets it back in.");
  verb.finish = [w](const Settings&, const Target& target) -> Judged {
    AccessOptions o;
    o.what = AccessVerb::revoke_node;
    o.target = target;
    o.subject = w->name;
    return o;
  };
  return verb;
}

}  // namespace

std::vector<Verb> access_verbs(CLI::App& root) {
  return {add_token(root), add_node(root)};
}

}  // namespace muster::cli
