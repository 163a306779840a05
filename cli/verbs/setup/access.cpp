// muster token, muster node: manage who may connect from other machines.
#include "base/text/time_text.hpp"
#include "cli/verbs/verb.hpp"
#include "client/connect/discovery.hpp"
#include "client/connect/objects.hpp"
#include "client/connect/token.hpp"
#include "client/settings/files.hpp"
#include "client/settings/submitter.hpp"
#include "client/terminal/exit_codes.hpp"
#include "client/terminal/json.hpp"
#include "client/terminal/table.hpp"
#include "client/terminal/text.hpp"
#include "core/cluster/nodes/claims.hpp"
#include "core/spec/values/duration.hpp"
#include "core/trust.hpp"
#include "trust/tls/certificates.hpp"

#include <algorithm>
#include <charconv>
#include <cstring>
#include <filesystem>
#include <iostream>
#include <pwd.h>
#include <unistd.h>
#include <utility>

namespace muster::cli {

// token create, list, revoke, credential; node revoke, claims, end-unknown
struct AccessOptions {
  enum class What {
    create,
    list,
    revoke,
    credential,
    revoke_node,
    show_claims,
    allow,
    end_unknown
  };
  What what = What::list;
  Target target;
  // create: the name of a user (empty: oneself), node, coordinator or pool; else what it is about
  std::string subject;
  core::TokenKind kind = core::TokenKind::user;
  core::NodeClaims claims{};  // create, of a node or a pool's; allow, unless `freeze`
  uint32_t uses = 1;          // create, of a pool
  bool freeze = false;
  std::optional<Millis> life_ms;
  std::string out;  // create: file to write; empty: stdout
};

int execute(const AccessOptions& options);

namespace {

constexpr char kGroup[] = "/apis/muster.dev/v1/";
constexpr Millis kSpareMs = 300'000;  // a cached credential is not handed out in its last minutes

Json claims_body(const core::NodeClaims& claims) {
  return {{"labels", claims.labels},
          {"slotsMax", claims.slots_max},
          {"resources", claims.resources_max}};
}

Result<Json> made_token(const AccessOptions& options) {
  const auto client = connect(options.target);
  Json body = Json::object();
  if (options.life_ms) body["ttlSeconds"] = *options.life_ms / 1000;
  const bool of_pool = options.kind == core::TokenKind::pool;
  if (of_pool || options.kind == core::TokenKind::node) body.update(claims_body(options.claims));
  if (of_pool) body["uses"] = options.uses;
  const std::string subject = options.subject.empty() ? user_name() : options.subject;
  auto answer = client->post(std::string(kGroup) + std::string(core::kind_name(options.kind)) +
                                 "s/" + url_encoded(subject) + "/token",
                             dumped(body));
  if (!answer) return answer.error();
  if (!answer->ok()) return refusal(*answer);
  return std::move(answer->json);
}

int create(const AccessOptions& options) {
  auto token = made_token(options);
  if (!token) return fail(token.error());
  const std::string text = text_at(*token, {"text"});
  if (options.out.empty()) {
    std::cout << text << std::flush;
    return kDone;
  }
  std::error_code ignored;
  const auto folder = std::filesystem::absolute(options.out, ignored).parent_path();
  std::filesystem::create_directories(folder, ignored);
  if (Status s = write_file(options.out, text); !s) return fail(s.error());
  const std::string kind(core::kind_name(options.kind));
  std::cout << options.out << ": token " << text_at(*token, {"id"}) << " of " << kind << " "
            << text_at(*token, {kind.c_str()}) << ", until "
            << text_at(*token, {"expirationTimestamp"}) << std::endl;
  return kDone;
}

// "node/c01"
std::string holder_of(const Json& token) {
  using core::TokenKind;
  for (const TokenKind kind :
       {TokenKind::node, TokenKind::user, TokenKind::coordinator, TokenKind::pool}) {
    const std::string word(core::kind_name(kind));
    if (const std::string name = text_at(token, {word.c_str()}); !name.empty())
      return word + "/" + name;
  }
  return "";
}

// Whether it has been used; "-": it may be used again and again.
std::string used_text(const Json& token) {
  const Json &used = at(token, {"used"}), &uses = at(token, {"uses"});
  if (uses.is_number()) return uses.dump() + "/" + at(token, {"usesMax"}).dump();
  if (!used.is_boolean()) return "-";
  return used.get<bool>() ? "yes" : "no";
}

int list(const AccessOptions& options) {
  const auto client = connect(options.target);
  auto found = object(*client, std::string(kGroup) + "tokens");
  if (!found) return fail(found.error());
  std::vector<std::vector<std::string>> rows = {{"ID", "OF", "EXPIRES", "MADE BY", "USED"}};
  for (const Json& token : at(*found, {"items"})) {
    rows.push_back({text_at(token, {"id"}), holder_of(token),
                    text_at(token, {"expirationTimestamp"}), text_at(token, {"madeBy"}),
                    used_text(token)});
  }
  std::cout << aligned(rows, "") << std::flush;
  return kDone;
}

int revoke(const AccessOptions& options) {
  const auto client = connect(options.target);
  const bool node = options.what == AccessOptions::What::revoke_node;
  auto answer =
      node
          ? client->post(
                std::string(kGroup) + "nodes/" + url_encoded(options.subject) + "/revocation", "{}")
          : client->remove(std::string(kGroup) + "tokens/" + url_encoded(options.subject), "{}");
  if (!answer) return fail(answer.error());
  if (!answer->ok()) return fail(refusal(*answer));
  // The answer names nothing, so only this one shows that a coordinator has revoked it.
  const auto known = client->get(node ? object_path(Kind::node, "", options.subject)
                                      : std::string(kGroup) + "tokens");
  if (!known && known.error().code == Errc::foreign) return fail(known.error());
  std::cout << (node ? "node/" : "token/") << options.subject << " revoked" << std::endl;
  if (node && known && known->status == 404)
    std::cerr << "muster: no node of that name has registered" << std::endl;
  return kDone;
}

int print_claims(const Json& claims) {
  const std::string name = "node/" + text_at(claims, {"node"});
  if (at(claims, {"asRegistered"}) == Json(true)) {
    std::cout << name
              << " may claim what it had at its last registration, or anything on the "
                 "coordinator's machine"
              << std::endl;
    return kDone;
  }
  std::string labels, resources;
  for (const Json& pattern : at(claims, {"labels"}))
    labels += (labels.empty() ? "" : ", ") + pattern.get<std::string>();
  for (const auto& [resource, most] : at(claims, {"resources"}).items())
    resources += (resources.empty() ? "" : ", ") + resource + "=" + most.dump();
  std::cout << name << " may claim:\n  labels     " << (labels.empty() ? "none" : labels)
            << "\n  slots      at most " << at(claims, {"slotsMax"}).dump() << "\n  resources  "
            << (resources.empty() ? "none" : resources) << std::endl;
  if (const std::string pool = text_at(claims, {"pool"}); !pool.empty())
    std::cout << "  pool       " << pool << ", with whose token it joined" << std::endl;
  return kDone;
}

int claims(const AccessOptions& options) {
  const auto client = connect(options.target);
  const std::string path =
      std::string(kGroup) + "nodes/" + url_encoded(options.subject) + "/claims";
  const Json body = options.freeze ? Json{{"freeze", true}} : claims_body(options.claims);
  auto answer = options.what == AccessOptions::What::allow ? client->post(path, dumped(body))
                                                           : client->get(path);
  if (!answer) return fail(answer.error());
  if (!answer->ok()) return fail(refusal(*answer));
  return print_claims(answer->json);
}

// The pods that the node runs and a restored state does not contain, for people; empty: none.
std::string unknown_pods(const Json& node) {
  for (const Json& one : at(node, {"status", "conditions"}))
    if (text_at(one, {"type"}) == "UnknownPods") {
      const std::string message = text_at(one, {"message"});
      const size_t colon = message.rfind(": ");
      return colon == message.npos ? message : message.substr(colon + 2);
    }
  return "";
}

int end_unknown(const AccessOptions& options) {
  const auto client = connect(options.target);
  const std::string name = "node/" + options.subject;
  const auto node = object(*client, object_path(Kind::node, "", options.subject));
  if (!node) return fail(node.error());
  const std::string pods = unknown_pods(*node);
  if (pods.empty()) {
    std::cout << name << " runs no unknown pods" << std::endl;
    return kDone;
  }
  auto answer = client->remove(
      std::string(kGroup) + "nodes/" + url_encoded(options.subject) + "/unknownpods", "{}");
  if (!answer) return fail(answer.error());
  if (!answer->ok()) return fail(refusal(*answer));
  std::cout << name << " ends " << pods << std::endl;
  return kDone;
}

// The file that caches credentials for this coordinator between calls by kubectl.
std::string cache_path(const Target& target) {
  return user_folder("XDG_CACHE_HOME", ".cache") + "/credential-" +
         tls::sha256_hex(target.api).substr(0, 16) + ".json";
}

// Whether the coordinator knows a token: it was not revoked, nor made by another coordinator at the
// same address.
bool still_there(const Target& target, const std::string& id) {
  const auto client = connect(target);
  auto found = object(*client, std::string(kGroup) + "tokens");
  if (!found) return false;
  const Json& tokens = at(*found, {"items"});
  return std::any_of(tokens.begin(), tokens.end(),
                     [&id](const Json& token) { return text_at(token, {"id"}) == id; });
}

int print_credential(const std::string& bearer, const std::string& until) {
  Json status = {{"token", bearer}};
  if (!until.empty()) status["expirationTimestamp"] = until;
  std::cout << dumped(Json{{"apiVersion", "client.authentication.k8s.io/v1"},
                           {"kind", "ExecCredential"},
                           {"status", status}})
            << std::endl;
  return kDone;
}

// With https: the token from the file, or one obtained through munge.
int remote_credential(const Target& target) {
  const auto client = connect(target);
  auto token = client->token();
  if (token.ok() && !token->until.empty()) {
    // kubectl asks only once, so this checks whether a cached token is still accepted. kubectl will
    // run into any other error itself.
    const auto ignored = client->get("/version");
    token = client->token();
  }
  if (!token) return fail(token.error());
  return print_credential(token->bearer, token->until);
}

// On the coordinator's machine: a cached token, or a new one.
int credential(AccessOptions options) {
  auto target = narrowed(options.target);  // tokens are cached by address
  if (!target) return fail(target.error());
  options.target = std::move(*target);
  if (options.target.api.starts_with(kHttps)) return remote_credential(options.target);
  const std::string path = cache_path(options.target);
  if (auto text = read_file(path); text.ok()) {
    const Json cached = read_json(*text);
    const auto until = parse_time(text_at(cached, {"expirationTimestamp"}));
    auto token = parse_token(text_at(cached, {"text"}));
    if (token.ok() && until && *until > wall_now() + kSpareMs &&
        still_there(options.target, text_at(cached, {"id"})))
      return print_credential(token->bearer, text_at(cached, {"expirationTimestamp"}));
  }
  auto made = made_token(options);
  if (!made) return fail(made.error());
  auto token = parse_token(text_at(*made, {"text"}));
  if (!token) return fail(token.error());
  std::error_code ignored;
  const auto folder = std::filesystem::path(path).parent_path();
  std::filesystem::create_directories(folder, ignored);
  // Without a cache, each call makes a token: slower, but no reason to fail.
  if (Status s = write_file(path, dumped(*made)); !s)
    std::cerr << "muster: " << s.error().message << std::endl;
  return print_credential(token->bearer, text_at(*made, {"expirationTimestamp"}));
}

using AccessVerb = AccessOptions::What;

struct ClaimWords {
  std::vector<std::string> labels, resources;
  std::string slots_max;

  bool empty() const { return labels.empty() && resources.empty() && slots_max.empty(); }
};

void add_claims(FlagRows& rows, ClaimWords& w) {
  rows.insert(
      rows.end(),
      {{"--label", "KEY=VALUE",
        "Label that the node may claim; * stands for anything (gpu=*); repeatable", &w.labels},
       {"--resource", "NAME=MAX",
        "Resource that the node may claim, and how much of it (nvidia.com/gpu=4); repeatable",
        &w.resources},
       {"--slots-max", "N",
        "Slots that the node may claim (default: " + std::to_string(core::NodeClaims::kSlots) + ")",
        &w.slots_max}});
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
  Target target;
  std::string what, id, node, user, coordinator, pool, uses, ttl, out;
  ClaimWords claims;
};

// For whom a token is created, and for how long.
std::optional<Usage> read_holder(const TokenWords& w, AccessOptions& o) {
  if (!w.node.empty()) o.kind = core::TokenKind::node;
  if (!w.coordinator.empty()) o.kind = core::TokenKind::coordinator;
  if (!w.pool.empty()) {
    o.kind = core::TokenKind::pool;
    const int64_t uses = number_in(w.uses);
    if (uses < 1 || uses > core::kPoolUsesMax)
      return Usage{"--pool needs --uses N: how many nodes may join, 1 to " +
                   std::to_string(core::kPoolUsesMax)};
    o.uses = static_cast<uint32_t>(uses);
  }
  o.subject = w.node + w.coordinator + w.pool + w.user;  // one of them
  if (w.ttl.empty()) return std::nullopt;
  auto life = core::parse_duration(w.ttl);
  if (!life) return Usage{"--ttl: " + life.error().message};
  const Millis most =
      o.kind == core::TokenKind::user ? core::kUserTokenLifeMax : core::kNodeTokenLifeMax;
  if (*life < core::kTokenLifeMin || *life > most)
    return Usage{"--ttl: must be 1m to " + std::to_string(most / 86'400'000) + "d"};
  o.life_ms = *life;
  return std::nullopt;
}

Judged read_token_words(const TokenWords& w) {
  AccessOptions o;
  o.target = w.target;
  const bool creates = w.what == "create";
  const int holders = !w.node.empty() + !w.user.empty() + !w.coordinator.empty() + !w.pool.empty();
  if (!creates && !(holders == 0 && w.uses.empty() && w.ttl.empty() && w.out.empty()))
    return Usage{
        "--node, --user, --coordinator, --pool, --uses, --ttl and --out are only for `muster token "
        "create`"};
  if (w.what == "revoke" && w.id.empty())
    return Usage{"revoke which token? muster token revoke ID; `muster token list` lists them"};
  if (w.what != "revoke" && !w.id.empty())
    return Usage{"`" + w.id + "`: only `muster token revoke` takes an ID"};
  if (holders > 1) return Usage{"--node, --user, --coordinator and --pool are mutually exclusive"};
  if (w.pool.empty() && !w.uses.empty()) return Usage{"--uses is only for `--pool NAME`"};
  if (w.node.empty() && w.pool.empty() && !w.claims.empty())
    return Usage{
        "--label, --resource and --slots-max are only for `--node NAME` and `--pool NAME`"};
  auto claims = read_claims(w.claims);
  if (!claims) return Usage{claims.error().message};
  o.claims = std::move(*claims);
  o.what = creates              ? AccessVerb::create
           : w.what == "list"   ? AccessVerb::list
           : w.what == "revoke" ? AccessVerb::revoke
                                : AccessVerb::credential;
  o.out = w.out;
  if (w.what == "revoke") {
    o.subject = w.id;
    return o;
  }
  return judged(read_holder(w, o), o);
}

struct NodeWords {
  Target target;
  std::string what, name;
  ClaimWords claims;
  bool freeze = false;
};

Judged read_node_words(const NodeWords& w) {
  AccessOptions o;
  o.target = w.target;
  o.subject = w.name;
  if (w.what != "claims") {
    if (w.freeze || !w.claims.empty())
      return Usage{
          "--label, --resource, --slots-max and --freeze are only for `muster node claims`"};
    o.what = w.what == "revoke" ? AccessVerb::revoke_node : AccessVerb::end_unknown;
    return o;
  }
  if (w.freeze && !w.claims.empty())
    return Usage{"--freeze cannot be combined with --label, --resource or --slots-max"};
  auto claims = read_claims(w.claims);
  if (!claims) return Usage{claims.error().message};
  o.claims = std::move(*claims);
  o.freeze = w.freeze;
  o.what = w.freeze || !w.claims.empty() ? AccessVerb::allow : AccessVerb::show_claims;
  return o;
}

}  // namespace

int execute(const AccessOptions& options) {
  switch (options.what) {
    case AccessOptions::What::create:
      return create(options);
    case AccessOptions::What::list:
      return list(options);
    case AccessOptions::What::credential:
      return credential(options);
    case AccessOptions::What::show_claims:
    case AccessOptions::What::allow:
      return claims(options);
    case AccessOptions::What::end_unknown:
      return end_unknown(options);
    case AccessOptions::What::revoke:
    case AccessOptions::What::revoke_node:
      break;
  }
  return revoke(options);
}

Verb token_verb() {
  auto w = std::make_shared<TokenWords>();
  FlagRows rows = {
      {"what", "create | list | revoke ID | credential",
       "create, list or revoke; credential prints an ExecCredential for kubectl", &w->what,
       one_of({"create", "list", "revoke", "credential"}), kRequired},
      {"id", "ID", "ID of the token", &w->id, kAnything, kHidden},
      {"--node", "NAME", "Node whose agent may join with this token, once", &w->node},
      {"--user", "NAME", "User that the token authenticates (default: you)", &w->user},
      {"--coordinator", "NAME",
       "Coordinator that may copy the whole journal with this token, to follow the one that leads",
       &w->coordinator},
      {"--pool", "NAME",
       "Pool of nodes whose agents may join with this token; their names begin with NAME-",
       &w->pool},
      {"--uses", "N", "How many nodes of the pool may join with it", &w->uses},
      {"--ttl", "T",
       "Lifetime, at least 1m (users: 12h by default, at most 30d; all others: 1h, at most 7d)",
       &w->ttl},
      {"--out", "F", "Write the token to this file (mode 0600) instead of printing it", &w->out}};
  add_claims(rows, w->claims);
  return {
      .title = {"Access", "token",
                "Create, list and revoke tokens for nodes, users and coordinators on other "
                "machines"},
      .rows = std::move(rows),
      .asks = {&w->target, ""},
      .footer =
          "Examples:\n  muster token create --node c01 --out c01.token\n"
          "  muster token create --node c02 --label 'gpu=*' --resource nvidia.com/gpu=4 --out "
          "c02.token\n  muster token create --pool hpc --uses 20 --ttl 1d --out hpc.token\n"
          "  muster token create --out ~/.config/muster/token\n"
          "  muster token create --coordinator head2:7119 --out head2.token\n"
          "  muster token list\n  muster token revoke 0123456789abcdef\n"
          "What a node claims beyond its token is shown under claimed.muster.dev/, or cut off.\n"
          "A token is shown only once. Anyone who holds it can use it until it expires or is "
          "revoked.\nWhere the coordinator runs with --munge, users log in without one.",
      .finish = [w](const Given&) -> Judged { return read_token_words(*w); }};
}

Verb node_verb() {
  auto w = std::make_shared<NodeWords>();
  FlagRows rows = {{"what", "claims NODE | revoke NODE | end-unknown NODE",
                    "claims: show or change what its agent may claim; revoke: reject all its "
                    "certificates and tokens from now on; end-unknown: end the pods there that a "
                    "restored state does not contain (UnknownPods)",
                    &w->what, one_of({"claims", "revoke", "end-unknown"}), kRequired},
                   {"node", "NODE", "Node to change", &w->name, kAnything, kHidden | kRequired}};
  add_claims(rows, w->claims);
  rows.push_back({"--freeze", "",
                  "Limit the node to the labels, resources and slots that it has now", &w->freeze});
  return {
      .title = {"Access", "node",
                "Decide what a node may claim, revoke its certificates, or end unknown pods"},
      .rows = std::move(rows),
      .asks = {&w->target, ""},
      .footer =
          "Examples:\n  muster node claims c01\n"
          "  muster node claims c01 --label 'gpu=*' --label site/rack=r7 --slots-max 64\n"
          "  muster node claims c01 --freeze\n  muster node revoke c01\n"
          "  muster node end-unknown c01\n"
          "The flags of `claims` replace what was allowed before. What the agent of another "
          "machine claims\n"
          "beyond it is shown under claimed.muster.dev/, or cut off. `kubectl label` sets labels "
          "of any node.\n"
          "A node that is revoked is disconnected at once, and its pods are treated as those of a "
          "node that\nhas stopped responding. A new join token lets it back in.",
      .finish = [w](const Given&) -> Judged { return read_node_words(*w); }};
}

}  // namespace muster::cli
