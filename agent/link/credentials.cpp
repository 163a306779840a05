#include "agent/link/credentials.hpp"

#include "base/clock.hpp"
#include "trust/tls/identity.hpp"
#include "trust/tls/link.hpp"

#include <cerrno>
#include <cstring>
#include <fstream>
#include <sstream>
#include <sys/stat.h>
#include <utility>

namespace muster::agent {
namespace {

constexpr const char* kFile = "credentials.pem";
constexpr const char* kJoinKey = "join-key.pem";
constexpr const char* kTokenLine = "# joined with token ";

std::optional<tls::Identity> holder(const tls::Bundle& bundle) {
  auto facts = tls::read_certificate(bundle.own.certificate);
  return facts.ok() ? tls::Identity::parse(facts->common_name) : std::nullopt;
}

Result<tls::Bundle> read_token(const std::string& file) {
  std::ifstream in(file, std::ios::binary);
  std::ostringstream text;
  text << in.rdbuf();
  if (!in) return Error{Errc::unavailable, std::strerror(errno)};
  return tls::read_bundle(text.str());
}

}  // namespace

std::string pool_of(const std::string& token_file) {
  if (token_file.empty()) return "";
  const auto bundle = read_token(token_file);
  const auto who = bundle.ok() ? holder(*bundle) : std::nullopt;
  return who && who->kind == tls::Identity::Kind::pool ? who->node : "";
}

Result<Credentials> Credentials::load(WorkDir& work_dir, const std::string& token_file) {
  Credentials credentials(work_dir);
  const std::string text = work_dir.read(kFile).value_or("");
  if (auto stored = tls::read_bundle(text); stored.ok()) {
    const auto who = holder(*stored);
    // A copied work-dir is another node.
    if (who && who->kind == tls::Identity::Kind::node && who->node == work_dir.node_name()) {
      credentials.learn(*tls::read_certificate(stored->own.certificate));
      credentials.own_ = std::move(*stored);
      if (text.starts_with(kTokenLine))
        credentials.used_token_ =
            text.substr(strlen(kTokenLine), text.find('\n') - strlen(kTokenLine));
    }
  }
  // Never fall back to no TLS because something is wrong here.
  if (token_file.empty() && !credentials.own_ && !text.empty())
    return invalid(work_dir.path() + "/" + kFile + " is not for node " + work_dir.node_name() +
                   ", or is damaged: use --token-file, or remove it to connect without TLS");
  if (token_file.empty()) return credentials;
  if (Status s = credentials.load_token(token_file); !s) return s.error();
  return credentials;
}

Status Credentials::load_token(const std::string& file) {
  struct stat info = {};
  if (stat(file.c_str(), &info) == 0 && S_ISREG(info.st_mode) && (info.st_mode & 077) != 0)
    return invalid("--token-file " + file + " can be read by other users: chmod 600 " + file);
  auto bundle = read_token(file);
  // A node that has joined no longer needs it.
  if (!bundle.ok() && bundle.error().code == Errc::unavailable && own_) return Nothing{};
  if (!bundle.ok()) return invalid("--token-file " + file + ": " + bundle.error().message);
  const auto who = holder(*bundle);
  const bool of_pool = who && who->kind == tls::Identity::Kind::pool;
  if (!who || (!of_pool && who->kind != tls::Identity::Kind::join))
    return invalid("--token-file " + file +
                   ": it is not a join token; `muster token create --node " +
                   work_dir_->node_name() + "` makes one");
  if (of_pool && !tls::is_in_pool(work_dir_->node_name(), who->node))
    return invalid("--token-file " + file + ": it is for nodes called " + who->node +
                   "-..., but this is node " + work_dir_->node_name() +
                   ": use another --work-dir or --name");
  if (!of_pool && who->node != work_dir_->node_name())
    return invalid("--token-file " + file + ": it is for node " + who->node +
                   ", but this is node " + work_dir_->node_name());
  if (tls::read_certificate(bundle->own.certificate)->until_ms <= wall_now()) {
    if (own_) return Nothing{};
    return invalid("--token-file " + file + ": the token has expired");
  }
  token_id_ = who->token;
  if (own_ && used_token_ == token_id_) return Nothing{};
  // An unused token replaces the certificate, which may have been revoked.
  token_ = std::move(*bundle);
  own_.reset();
  return Nothing{};
}

kj::TlsContext& Credentials::context() {
  const tls::Bundle& bundle = own_ ? *own_ : *token_;
  context_ = tls::client_context(bundle.own, bundle.authority);
  return *context_;
}

Result<std::string> Credentials::request() {
  if (key_.empty() && must_join()) {
    key_ = work_dir_->read(kJoinKey).value_or("");
    if (!tls::make_request(key_).ok()) {
      key_ = tls::make_key();
      if (Status s = work_dir_->replace(kJoinKey, key_); !s) return s.error();
    }
  }
  if (key_.empty()) key_ = tls::make_key();
  return tls::make_request(key_);
}

void Credentials::learn(const tls::Facts& facts) {
  const Millis made_ms = facts.from_ms + tls::kClockSkewMs, life_ms = facts.until_ms - made_ms;
  until_ms_ = facts.until_ms;
  renew_ms_ = made_ms + life_ms / 3 * 2;
  renew_again_ms_ = life_ms / 10;
}

Status Credentials::accept(const std::string& certificate) {
  const tls::Bundle& from = own_ ? *own_ : *token_;
  tls::Bundle bundle{{key_, certificate}, from.authority};
  const auto who = holder(bundle);
  const auto facts = tls::read_certificate(certificate);
  if (!tls::fits(bundle.own) || !who || who->kind != tls::Identity::Kind::node ||
      who->node != work_dir_->node_name())
    return invalid("the coordinator sent a certificate that is not this node's");
  if (!token_id_.empty()) used_token_ = token_id_;
  const std::string text = kTokenLine + used_token_ + "\n" + tls::bundle_text(bundle, "");
  if (Status s = work_dir_->replace(kFile, text); !s) return s;
  work_dir_->remove(kJoinKey);
  own_ = std::move(bundle);
  token_.reset();
  learn(*facts);
  key_.clear();
  return Nothing{};
}

}  // namespace muster::agent
