#include "standby/store/etcd.hpp"

#include "base/check.hpp"
#include "standby/store/endpoint.hpp"
#include "standby/store/etcd_messages.hpp"
#include "trust/tls/site.hpp"

#include <kj/compat/tls.h>
#include <kj/debug.h>

#include <algorithm>
#include <cctype>
#include <fstream>
#include <iterator>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace muster::standby {
namespace {

constexpr int kRenewals = 2;  // tries of a renewal while etcd elects a leader

Error unavailable(std::string why) {
  return {Errc::unavailable, std::move(why), {}};
}

// "connect(): Connection refused" -> "connection refused"
std::string reason_of(const kj::Exception& e) {
  if (auto meant = tls::explained_of_site(e))
    return *meant +
           (meant->starts_with("it rejects our certificate")
                ? ": --store-cert and --store-key need one of an authority that etcd trusts"
                : "");
  std::string text = e.getDescription().cStr();
  text = text.substr(0, text.find('\n'));
  constexpr std::string_view kResolver = "gai_strerror(status) = ";
  if (const size_t at = text.find(kResolver); at != std::string::npos)
    return "its host is not known: " + text.substr(at + kResolver.size());
  for (const char* known : {"Connection refused", "No route to host", "Network is unreachable"}) {
    if (text.find(known) == std::string::npos) continue;
    std::string reason = known;
    reason[0] = static_cast<char>(std::tolower(static_cast<unsigned char>(reason[0])));
    return reason;
  }
  // How it broke depends on who noticed it first.
  if (e.getType() == kj::Exception::Type::DISCONNECTED) return "the connection broke";
  return text.substr(0, text.find(';'));  // without KJ's values
}

Result<std::string> pem_of(const std::string& path) {
  std::ifstream file(path);
  std::string text{std::istreambuf_iterator<char>(file), {}};
  if (!file) return invalid(path + ": cannot be read");
  return text;
}

Result<kj::Own<kj::TlsContext>> context_of(const EtcdOptions& options) {
  std::string authorities;
  if (!options.ca_certificate.empty()) {
    auto text = pem_of(options.ca_certificate);
    if (!text) return text.error();
    authorities = std::move(*text);
    if (authorities.empty()) return invalid(options.ca_certificate + ": it is empty");
  }
  std::optional<tls::KeyPair> own;
  if (!options.certificate.empty()) {
    auto certificate = pem_of(options.certificate), key = pem_of(options.key);
    if (!certificate) return certificate.error();
    if (!key) return key.error();
    own = tls::KeyPair{std::move(*key), std::move(*certificate)};
    if (!tls::fits(*own))
      return invalid(options.key + ": this is not the key of the certificate in " +
                     options.certificate + ", or one of them is not in PEM format");
  }
  kj::Own<kj::TlsContext> context;
  const auto failed =
      kj::runCatchingExceptions([&] { context = tls::site_context(own, authorities); });
  if (failed != nullptr) {
    return invalid((authorities.empty() ? options.certificate : options.ca_certificate) +
                   ": there is no certificate in PEM format in it");
  }
  return kj::mv(context);
}

// Whether the body of an answer is one to the request.
using Fits = std::function<bool(const Json&)>;

class Etcd final : public Store {
 public:
  Etcd(kj::Network& network, kj::Timer& timer, EtcdOptions options,
       const std::vector<EtcdUrl>& urls, kj::Own<kj::TlsContext> tls)
      : timer_(timer), options_(std::move(options)), keys_(options_.prefix), tls_(kj::mv(tls)) {
    for (const EtcdUrl& url : urls) {
      kj::Maybe<kj::TlsContext&> context;
      if (tls_.get() != nullptr) context = *tls_;
      endpoints_.push_back(kj::heap<Endpoint>(network, names_, url, context));
    }
  }

  kj::Promise<Result<StoreSeen>> read() override;
  kj::Promise<Result<uint64_t>> grant(Millis life_ms) override;
  kj::Promise<Result<bool>> renew(uint64_t lease) override { return renew(lease, kRenewals); }
  kj::Promise<Status> revoke(uint64_t lease) override;
  kj::Promise<Result<StoreChanged>> change(StoreChange change) override;

 private:
  // One request, until an endpoint gives a definite answer to it.
  struct Call {
    const char* path;
    std::string body;
    Fits fits;
    kj::TimePoint end;
    size_t at = 0;              // the endpoint that is asked
    size_t failed = 0;          // endpoints that gave no answer
    bool sent = false;          // the endpoint that is asked may have got it
    bool asked_log_in = false;  // it may have got a request to log in
    bool unclear = false;       // an endpoint may have done it and did not say so
    bool logged_in = false;     // a new token was requested for it
    std::string whys{};         // of the endpoints that failed

    bool first_line() const { return path == kRenewPath; }
  };
  struct Heard {
    EtcdAnswer answer;  // `said` or `refused`
    bool unclear = false;
    std::string url{};  // of the endpoint

    bool refused() const { return answer.kind == EtcdAnswer::Kind::refused; }
  };
  using Hearing = Result<Heard>;

  kj::Promise<Hearing> ask(const char* path, std::string body, Fits fits);
  kj::Promise<Hearing> ask_to_read();
  kj::Promise<Hearing> attempt(kj::Own<Call> call);
  kj::Promise<EtcdAnswer> post(Call& call, const char* path, std::string body, bool& sent);
  kj::Promise<bool> log_in(Call& call, EtcdAnswer& refusal);
  kj::Promise<Hearing> heard(kj::Own<Call> call, EtcdAnswer answer);
  kj::Promise<Hearing> next(kj::Own<Call> call, const std::string& why);
  kj::Promise<Result<bool>> renew(uint64_t lease, int tries);
  kj::Promise<Result<bool>> confirm(uint64_t lease, uint64_t term, int tries);
  std::string failure_of(const kj::Exception& e, const Call& call) const;
  std::string misfit(const EtcdAnswer& answer, const std::string& url);
  static Error refused(const Heard& heard);

  kj::Timer& timer_;
  const EtcdOptions options_;
  const EtcdKeys keys_;
  const HttpNames names_;
  kj::Own<kj::TlsContext> tls_;  // null: no URL is https
  std::vector<kj::Own<Endpoint>> endpoints_;
  size_t preferred_ = 0;     // the endpoint to ask first: the one after the last that failed
  std::string token_;        // of options_.user; empty: not logged in
  uint64_t cluster_ = 0;     // the id of the etcd cluster; 0: nobody has answered yet
  std::string cluster_url_;  // who said so
};

Error Etcd::refused(const Heard& heard) {
  std::string message = "etcd at " + heard.url + " refused: " + heard.answer.why;
  if (heard.answer.without_users()) message += "; log in without a user and a password";
  return invalid(std::move(message));
}

std::string Etcd::misfit(const EtcdAnswer& answer, const std::string& url) {
  if (cluster_ == 0) {
    cluster_ = answer.cluster;
    cluster_url_ = url;
  }
  if (answer.cluster == cluster_) return "";
  return "it belongs to another etcd cluster than " + cluster_url_;
}

kj::Promise<Etcd::Hearing> Etcd::ask(const char* path, std::string body, Fits fits) {
  auto call = kj::heap<Call>(Call{path, std::move(body), std::move(fits),
                                  timer_.now() + 2 * options_.timeout_ms * kj::MILLISECONDS});
  call->at = preferred_;
  return attempt(kj::mv(call));
}

kj::Promise<Etcd::Hearing> Etcd::ask_to_read() {
  return ask(kTxnPath, read_request(keys_), [this](const Json& body) {
    const auto found = changed_of(body, keys_);
    return found && found->applied;  // there are no guards
  });
}

// Asks the endpoint of the call. Throws if it says nothing.
kj::Promise<EtcdAnswer> Etcd::post(Call& call, const char* path, std::string body, bool& sent) {
  const kj::Duration left =
      std::min(call.end - timer_.now(), options_.timeout_ms * kj::MILLISECONDS);
  Endpoint::Question question{path, std::move(body), path == kLogInPath ? "" : token_,
                              call.first_line() && path == call.path};
  return timer_.timeoutAfter(left, endpoints_[call.at]->ask(std::move(question), sent))
      .then([](Endpoint::Answer answer) { return read_answer(answer.status, answer.body); });
}

// False: the user could not log in; says why in `refusal`.
kj::Promise<bool> Etcd::log_in(Call& call, EtcdAnswer& refusal) {
  call.logged_in = true;
  return post(call, kLogInPath, log_in_request(options_.user, options_.password), call.asked_log_in)
      .then([this, &refusal](EtcdAnswer answer) {
        const bool said = answer.kind == EtcdAnswer::Kind::said;
        token_ = said ? member_text(answer.body, "token") : "";
        refusal = std::move(answer);
        if (said) refusal = {EtcdAnswer::Kind::unclear, {}, 0, 0, 0, "it gives no token"};
        return !token_.empty();
      });
}

std::string Etcd::failure_of(const kj::Exception& e, const Call& call) const {
  if (e.getType() == kj::Exception::Type::OVERLOADED)
    return "no answer within " + std::to_string(options_.timeout_ms) + " ms";
  std::string reason = reason_of(e);
  const bool closed = e.getType() == kj::Exception::Type::DISCONNECTED && call.sent;
  if (closed && cluster_ == 0 && !endpoints_[call.at]->url().tls)
    reason += "; if it uses TLS, its URL begins with https://";
  return reason;
}

kj::Promise<Etcd::Hearing> Etcd::attempt(kj::Own<Call> call) {
  Call& c = *call;
  c.sent = false;
  kj::Promise<EtcdAnswer> answering = nullptr;
  if (!options_.user.empty() && token_.empty()) {
    auto refusal = kj::heap<EtcdAnswer>();
    auto in = log_in(c, *refusal);
    answering =
        in.then([this, &c, refusal = kj::mv(refusal)](bool in) mutable -> kj::Promise<EtcdAnswer> {
          if (in) return post(c, c.path, c.body, c.sent);
          return std::move(*refusal);
        });
  } else {
    answering = post(c, c.path, c.body, c.sent);
  }
  struct Outcome {
    EtcdAnswer answer;
    std::string failed{};
  };
  return answering
      .then([](EtcdAnswer answer) { return Outcome{std::move(answer)}; },
            [this, &c](kj::Exception&& e) {
              return Outcome{{}, failure_of(e, c)};
            })
      .then([this, call = kj::mv(call)](Outcome outcome) mutable -> kj::Promise<Hearing> {
        if (!outcome.failed.empty()) {
          call->unclear |= call->sent;
          return next(kj::mv(call), outcome.failed);
        }
        return heard(kj::mv(call), std::move(outcome.answer));
      });
}

kj::Promise<Etcd::Hearing> Etcd::heard(kj::Own<Call> call, EtcdAnswer answer) {
  const std::string url = endpoints_[call->at]->url().text();
  if (answer.needs_log_in() && !options_.user.empty() && !call->logged_in) {
    token_.clear();
    return attempt(kj::mv(call));
  }
  if (answer.kind == EtcdAnswer::Kind::said)
    answer.why =
        call->fits(answer.body) ? misfit(answer, url) : "its answer does not fit the request";
  if (answer.kind != EtcdAnswer::Kind::refused && !answer.why.empty()) {
    call->unclear |= call->sent;
    return next(kj::mv(call), answer.why);
  }
  return Hearing(Heard{std::move(answer), call->unclear, url});
}

kj::Promise<Etcd::Hearing> Etcd::next(kj::Own<Call> call, const std::string& why) {
  if (!call->whys.empty()) call->whys += "; ";
  call->whys += endpoints_[call->at]->url().text() + ": " + why;
  ++call->failed;
  call->at = (call->at + 1) % endpoints_.size();
  preferred_ = call->at;
  if (call->failed < endpoints_.size() && timer_.now() < call->end) return attempt(kj::mv(call));
  return Hearing(unavailable("etcd gives no answer: " + call->whys));
}

kj::Promise<Result<StoreSeen>> Etcd::read() {
  return ask_to_read().then([this](Hearing hearing) -> Result<StoreSeen> {
    if (!hearing) return hearing.error();
    if (hearing->refused()) return refused(*hearing);
    return std::move(changed_of(hearing->answer.body, keys_)->now);
  });
}

kj::Promise<Result<uint64_t>> Etcd::grant(Millis life_ms) {
  MUSTER_CHECK(life_ms > 0, life_ms);
  const auto fits = [life_ms](const Json& body) {
    const auto lease = number_of(body, "ID"), seconds = number_of(body, "TTL");
    return lease && *lease != 0 && seconds && *seconds >= seconds_of(life_ms);
  };
  return ask(kGrantPath, grant_request(life_ms), fits)
      .then([](Hearing hearing) -> Result<uint64_t> {
        if (!hearing) return hearing.error();
        if (hearing->refused()) return refused(*hearing);
        return *number_of(hearing->answer.body, "ID");
      });
}

kj::Promise<Result<bool>> Etcd::renew(uint64_t lease, int tries) {
  const auto fits = [lease](const Json& body) {
    const auto id = number_of(body, "ID");
    return id && *id == lease && number_of(body, "TTL");
  };
  return ask(kRenewPath, lease_request(lease), fits)
      .then([this, lease, tries](Hearing hearing) -> kj::Promise<Result<bool>> {
        if (!hearing) return Result<bool>(hearing.error());
        if (hearing->answer.not_found()) return Result<bool>(false);
        if (hearing->refused()) return Result<bool>(refused(*hearing));
        if (*number_of(hearing->answer.body, "TTL") == 0) return Result<bool>(false);
        return confirm(lease, hearing->answer.term, tries);
      });
}

// Whether etcd is still in the term in which it renewed the lease; else renews it again.
kj::Promise<Result<bool>> Etcd::confirm(uint64_t lease, uint64_t term, int tries) {
  return ask_to_read().then(
      [this, lease, term, tries](Hearing hearing) -> kj::Promise<Result<bool>> {
        if (!hearing) return Result<bool>(hearing.error());
        if (hearing->refused()) return Result<bool>(refused(*hearing));
        if (hearing->answer.term == term) return Result<bool>(true);
        if (tries > 1) return renew(lease, tries - 1);
        return Result<bool>(unavailable("etcd is electing a leader"));
      });
}

kj::Promise<Status> Etcd::revoke(uint64_t lease) {
  const auto fits = [](const Json&) { return true; };
  return ask(kRevokePath, lease_request(lease), fits).then([](Hearing hearing) -> Status {
    if (!hearing) return hearing.error();
    if (hearing->refused() && !hearing->answer.not_found()) return refused(*hearing);
    return Nothing{};
  });
}

kj::Promise<Result<StoreChanged>> Etcd::change(StoreChange change) {
  MUSTER_CHECK(!change.leader || change.leader->lease != 0);
  std::string body = change_request(keys_, change);
  const auto fits = [this](const Json& answer) { return changed_of(answer, keys_).has_value(); };
  return ask(kTxnPath, std::move(body), fits)
      .then([this, change = std::move(change)](Hearing hearing) -> Result<StoreChanged> {
        if (!hearing) return hearing.error();
        const Heard& heard = *hearing;
        const Error unknown = unavailable(
            "etcd: whether the change was made is not known: an endpoint did not answer");
        if (heard.refused()) {
          if (heard.unclear) return unknown;
          if (heard.answer.not_found())
            return Error{Errc::not_found, "etcd: the lease is gone", {}};
          return refused(heard);
        }
        auto changed = changed_of(heard.answer.body, keys_);
        if (!changed->applied && heard.unclear) {
          if (!shows(changed->now, change)) return unknown;
          changed->applied = true;
        }
        return std::move(*changed);
      });
}

}  // namespace

Result<kj::Own<Store>> etcd_store(kj::Network& network, kj::Timer& timer, EtcdOptions options) {
  MUSTER_CHECK(!options.urls.empty() && options.timeout_ms > 0);
  std::vector<EtcdUrl> urls;
  for (const std::string& text : options.urls) {
    auto url = parse_etcd_url(text);
    if (!url) return invalid(text + ": " + url.error().message);
    urls.push_back(std::move(*url));
  }
  kj::Own<kj::TlsContext> tls;
  if (std::any_of(urls.begin(), urls.end(), [](const EtcdUrl& url) { return url.tls; })) {
    auto made = context_of(options);
    if (!made) return made.error();
    tls = kj::mv(*made);
  }
  return kj::Own<Store>(kj::heap<Etcd>(network, timer, std::move(options), urls, kj::mv(tls)));
}

}  // namespace muster::standby
