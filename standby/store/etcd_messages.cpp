#include "standby/store/etcd_messages.hpp"

#include "api/http/url.hpp"
#include "base/check.hpp"
#include "base/printable.hpp"
#include "trust/tls/certificates.hpp"

#include <algorithm>
#include <utility>

namespace muster::standby {
namespace {

constexpr size_t kShown = 80;  // bytes of a foreign answer in an error

// gRPC's codes of what etcd did not do.
constexpr int kInvalid = 3, kNotFound = 5, kDenied = 7, kPrecondition = 9, kUnauthenticated = 16;

Json range_of(const std::string& key) {
  return {{"request_range", {{"key", tls::base64(key)}}}};
}

void add_reads(Json& operations, const EtcdKeys& keys) {
  operations.push_back(range_of(keys.configuration));
  operations.push_back(range_of(keys.leader));
}

Json guard(const std::string& key, const char* target, const char* member, uint64_t revision) {
  return {{"key", tls::base64(key)},
          {"target", target},
          {"result", "EQUAL"},
          {member, std::to_string(revision)}};
}

// The text and the code of an error; nullopt if it is not one of etcd.
std::optional<std::pair<std::string, int>> error_of(const Json& json) {
  const Json* object = &json;
  if (const auto it = json.find("error"); it != json.end() && it->is_object()) object = &*it;
  auto code = member_number<int>(*object, "code");
  if (!code) code = member_number<int>(*object, "grpc_code");
  std::string text = member_text(*object, "message");
  if (text.empty()) text = member_text(*object, "error");
  if (!code || text.empty()) return std::nullopt;
  return std::pair{utf8_prefix(on_one_line(text), 4 * kShown), *code};
}

// The row in the answer to range_of(key); false: it does not answer that.
bool read_row(const Json& response, const std::string& key, std::optional<StoreRow>& row) {
  if (!response.is_object()) return false;
  const auto range = response.find("response_range");
  if (range == response.end() || !range->is_object()) return false;
  const auto rows = range->find("kvs");
  if (rows == range->end() || (rows->is_array() && rows->empty())) return true;
  if (!rows->is_array() || rows->size() != 1 || !rows->front().is_object()) return false;
  const Json& found = rows->front();
  const auto value = from_base64(member_text(found, "value"));
  const auto revision = number_of(found, "mod_revision");
  const auto created = number_of(found, "create_revision");
  const auto lease = number_of(found, "lease");
  if (member_text(found, "key") != tls::base64(key) || !value || !revision || !created || !lease)
    return false;
  if (*created == 0 || *revision < *created) return false;
  row = {*value, *revision, *created, *lease};
  return true;
}

}  // namespace

std::string read_request(const EtcdKeys& keys) {
  Json reads = Json::array();
  add_reads(reads, keys);
  return dumped(Json{{"success", std::move(reads)}});
}

std::string change_request(const EtcdKeys& keys, const StoreChange& change) {
  MUSTER_CHECK(!(change.leader && change.resigns));
  Json done = Json::array(), found = Json::array();
  if (change.configuration)
    done.push_back({{"request_put",
                     {{"key", tls::base64(keys.configuration)},
                      {"value", tls::base64(*change.configuration)}}}});
  if (change.leader)
    done.push_back({{"request_put",
                     {{"key", tls::base64(keys.leader)},
                      {"value", tls::base64(change.leader->member)},
                      {"lease", std::to_string(change.leader->lease)}}}});
  if (change.resigns)
    done.push_back({{"request_delete_range", {{"key", tls::base64(keys.leader)}}}});
  add_reads(done, keys);
  add_reads(found, keys);
  const Json guards = {
      guard(keys.configuration, "MOD", "mod_revision", change.configuration_revision),
      guard(keys.leader, "CREATE", "create_revision", change.leader_created)};
  return dumped(
      Json{{"compare", guards}, {"success", std::move(done)}, {"failure", std::move(found)}});
}

uint64_t seconds_of(Millis life_ms) {
  return static_cast<uint64_t>(std::max<Millis>(1, (life_ms + 999) / 1000));
}

std::string grant_request(Millis life_ms) {
  return dumped(Json{{"TTL", std::to_string(seconds_of(life_ms))}});
}

std::string lease_request(uint64_t lease) {
  return dumped(Json{{"ID", std::to_string(lease)}});
}

std::string log_in_request(const std::string& user, const std::string& password) {
  return dumped(Json{{"name", user}, {"password", password}});
}

bool EtcdAnswer::needs_log_in() const {
  return kind == Kind::refused &&
         (code == kUnauthenticated || why.find("user name is empty") != why.npos ||
          why.find("revision of auth store is old") != why.npos);
}

bool EtcdAnswer::not_found() const {
  return kind == Kind::refused && code == kNotFound;
}

bool EtcdAnswer::without_users() const {
  return kind == Kind::refused && why.find("authentication is not enabled") != why.npos;
}

EtcdAnswer read_answer(unsigned status, std::string_view body) {
  EtcdAnswer answer;
  Json json = Json::parse(body, nullptr, false);
  if (json.is_object()) {
    if (const auto error = error_of(json)) {
      const auto& [text, code] = *error;
      const bool refused = code == kInvalid || code == kNotFound || code == kDenied ||
                           code == kPrecondition || code == kUnauthenticated;
      answer.kind = refused ? EtcdAnswer::Kind::refused : EtcdAnswer::Kind::unclear;
      answer.code = code;
      answer.why = text;
      return answer;
    }
    if (const auto it = json.find("result"); it != json.end() && it->is_object()) {
      Json inner = std::move(*it);
      json = std::move(inner);
    }
    const Json* header = find_path(json, {"header"});
    if (status == 200 && header != nullptr && header->is_object()) {
      const auto cluster = number_of(*header, "cluster_id");
      const auto term = number_of(*header, "raft_term");
      if (cluster && *cluster != 0 && term && *term != 0) {
        answer = {EtcdAnswer::Kind::said, std::move(json), *cluster, *term, 0, ""};
        return answer;
      }
    }
  }
  answer.why = "it answered HTTP " + std::to_string(status);
  if (status == 200)
    answer.why += " with what etcd does not send: \"" + on_one_line(utf8_prefix(body, kShown)) +
                  (body.size() > kShown ? "...\"" : "\"");
  return answer;
}

std::optional<uint64_t> number_of(const Json& object, const char* name) {
  const auto it = object.find(name);
  if (it == object.end()) return 0;
  if (!it->is_string()) return std::nullopt;
  return api::whole_number<uint64_t>(it->get_ref<const std::string&>());
}

std::optional<StoreChanged> changed_of(const Json& body, const EtcdKeys& keys) {
  StoreChanged changed;
  if (const auto it = body.find("succeeded"); it != body.end()) {
    if (!it->is_boolean()) return std::nullopt;
    changed.applied = it->get<bool>();
  }
  const auto responses = body.find("responses");
  if (responses == body.end() || !responses->is_array() || responses->size() < 2)
    return std::nullopt;
  const size_t n = responses->size();
  if (!read_row((*responses)[n - 2], keys.configuration, changed.now.configuration) ||
      !read_row((*responses)[n - 1], keys.leader, changed.now.leader))
    return std::nullopt;
  return changed;
}

bool shows(const StoreSeen& seen, const StoreChange& change) {
  if (change.configuration) {
    if (!seen.configuration || seen.configuration->value != *change.configuration) return false;
    if (seen.configuration->revision <= change.configuration_revision) return false;
  } else if ((seen.configuration ? seen.configuration->revision : 0) !=
             change.configuration_revision) {
    return false;
  }
  if (change.leader)
    return seen.leader && seen.leader->value == change.leader->member &&
           seen.leader->lease == change.leader->lease;
  if (change.resigns) return !seen.leader;
  return (seen.leader ? seen.leader->created : 0) == change.leader_created;
}

std::optional<std::string> from_base64(std::string_view text) {
  if (text.size() % 4 != 0) return std::nullopt;
  constexpr std::string_view kDigits =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string bytes;
  bytes.reserve(text.size() / 4 * 3);
  for (size_t i = 0; i < text.size(); i += 4) {
    const bool last = i + 4 == text.size();
    const size_t pads = !last                                      ? 0
                        : text[i + 2] == '=' && text[i + 3] == '=' ? 2
                                                                   : text[i + 3] == '=';
    uint32_t three = 0;
    for (size_t j = 0; j < 4; ++j) {
      const size_t digit = j >= 4 - pads ? 0 : kDigits.find(text[i + j]);
      if (digit == kDigits.npos) return std::nullopt;
      three = three << 6 | static_cast<uint32_t>(digit);
    }
    for (size_t j = 0; j < 3 - pads; ++j) bytes += static_cast<char>(three >> (16 - 8 * j) & 0xff);
  }
  return bytes;
}

}  // namespace muster::standby
