#include "api/routes/kept/account_routes.hpp"

#include "api/kube/schema/protobuf.hpp"
#include "api/routes/kept/read_routes.hpp"
#include "api/view/query/seen_namespaces.hpp"
#include "api/view/query/selector.hpp"
#include "api/view/render/render_cache.hpp"

#include <algorithm>
#include <optional>
#include <set>
#include <string>
#include <utility>

namespace muster::api {
namespace {

constexpr const char* kAccount = "default";
constexpr const char* kMeta = "meta.k8s.io/v1";
constexpr kj::Duration kLookPause = 200 * kj::MILLISECONDS;  // a look may visit all jobs of a user

using Spaces = std::set<std::string>;

// The namespace and the name in the path; empty: all.
struct AccountPath {
  std::string ns, name;
};
std::optional<AccountPath> account_path(const Url& url) {
  const std::vector<std::string>& p = url.path;
  if (p.size() < 3 || p[0] != "api" || p[1] != "v1") return std::nullopt;
  AccountPath path;
  size_t at = 2;
  if (p[at] == "namespaces" && p.size() > 4) {
    path.ns = p[3];
    at = 4;
  }
  if (p[at] != "serviceaccounts" || p.size() > at + 2) return std::nullopt;
  if (p.size() == at + 2) path.name = p[at + 1];
  if (!path.name.empty() && path.ns.empty()) return std::nullopt;
  return path;
}

OrderedJson metadata(const std::string& ns, uint64_t version) {
  return {{"name", kAccount},
          {"namespace", ns},
          {"resourceVersion", std::to_string(version)},
          {"creationTimestamp", nullptr}};
}

OrderedJson object(const std::string& ns, uint64_t version, Form form) {
  const bool bare = form != Form::plain;
  return {{"kind", bare ? "PartialObjectMetadata" : "ServiceAccount"},
          {"apiVersion", bare ? kMeta : "v1"},
          {"metadata", metadata(ns, version)}};
}

OrderedJson table(const Spaces& spaces, uint64_t version, bool columns) {
  auto column = [](const char* name, const char* type, const char* format) -> OrderedJson {
    return {
        {"name", name}, {"type", type}, {"format", format}, {"description", name}, {"priority", 0}};
  };
  OrderedJson table = {{"kind", "Table"},
                       {"apiVersion", kMeta},
                       {"metadata", {{"resourceVersion", std::to_string(version)}}},
                       {"columnDefinitions", nullptr}};
  if (columns)
    table["columnDefinitions"] =
        OrderedJson::array({column("Name", "string", "name"), column("Secrets", "integer", ""),
                            column("Age", "string", "")});
  table["rows"] = OrderedJson::array();
  for (const std::string& ns : spaces) {
    OrderedJson row;
    row["cells"] = OrderedJson::array({kAccount, 0, "<unknown>"});
    row["object"] = object(ns, version, Form::metadata);
    table["rows"].push_back(std::move(row));
  }
  return table;
}

OrderedJson shown(const std::string& ns, uint64_t version, Form form, bool columns = true) {
  return is_table(form) ? table({ns}, version, columns) : object(ns, version, form);
}

OrderedJson list(const Spaces& spaces, uint64_t version, Form form) {
  if (is_table(form)) return table(spaces, version, true);
  const bool bare = form != Form::plain;
  OrderedJson list = {{"kind", bare ? "PartialObjectMetadataList" : "ServiceAccountList"},
                      {"apiVersion", bare ? kMeta : "v1"},
                      {"metadata", {{"resourceVersion", std::to_string(version)}}}};
  list["items"] = OrderedJson::array();
  for (const std::string& ns : spaces) list["items"].push_back(object(ns, version, form));
  return list;
}

// The accounts that a list or watch selects.
struct Selected {
  std::string ns;  // empty: all
  Selector labels, fields;
  Viewer viewer;

  bool matches(const std::string& space) const {
    if (!ns.empty() && space != ns) return false;
    return labels.matches([](std::string_view) { return std::nullopt; }) &&
           fields.matches([&](std::string_view key) -> std::optional<std::string_view> {
             return key == "metadata.name" ? std::string_view(kAccount) : std::string_view(space);
           });
  }
  Spaces of(const View& view) const {
    Spaces spaces = seen_namespaces(view, viewer);
    std::erase_if(spaces, [this](const std::string& one) { return !matches(one); });
    return spaces;
  }
};

Result<Selected> selected(const Exchange& exchange, const AccessGate& gate, const std::string& ns) {
  auto labels = Selector::labels(exchange.url.get("labelSelector"));
  if (!labels.ok()) return labels.error();
  // The fields of a config map are those that each kind has.
  auto fields = Selector::fields(exchange.url.get("fieldSelector"), Kind::config_map);
  if (!fields.ok()) return fields.error();
  return Selected{ns, std::move(*labels), std::move(*fields), gate.viewer(exchange.caller)};
}

// The namespace of a changed object, if the viewer sees the object.
std::optional<std::string> space_of(const View& view, const Viewer& viewer, const Change& change) {
  View::Was was;  // keeps what `found` points to
  std::optional<Shown> found;
  if (change.type == Change::Type::removed) {
    was = view.was(change.key, change.before, change.version);
    found = was.shown;
  } else {
    found = view.find(change.key);
  }
  if (!found || viewer.sight(*found) == Sight::nothing) return std::nullopt;
  if (found->kept)
    return found->kept->kept->ns.empty() ? found->kept->kept->name : found->kept->kept->ns;
  return found->job ? std::optional(found->job->object().meta.ns) : std::nullopt;
}

// A namespace is in use by these; pods and events of a job have the job's.
constexpr Kind kUsers[] = {Kind::name_space, Kind::job,   Kind::config_map,
                           Kind::lease,      Kind::event, Kind::cron_job};

// Whether all changes since this version are known.
bool known_since(const View& view, uint64_t version) {
  return std::ranges::all_of(kUsers,
                             [&](Kind kind) { return view.after(kind, version).has_value(); });
}

class AccountWatch {
 public:
  // `since`: the version of the list that the client has, if any.
  AccountWatch(StreamContext& context, Exchange& exchange, Selected selected, WatchStart start,
               std::optional<uint64_t> since)
      : context_(context),
        exchange_(exchange),
        selected_(std::move(selected)),
        form_(exchange.form()),
        encoding_(exchange.accepted.encoding),
        start_(start),
        ends_(context.timer.now() + start.time),
        who_(exchange.who()),
        out_(exchange.open(encoding_ == Encoding::protobuf ? kProtobufWatchType : kJsonType)) {
    const View& view = context_.view;
    if (!start.initial)
      told_ = since && *since <= view.version() ? before(*since) : selected_.of(view);
  }

  kj::Promise<void> run() {
    return context_.write(*out_, {}).then([this] { return round(); });
  }

 private:
  // What a client knows that has listed at this version. Where that is not certain, it is told
  // again what there is, and what there is not.
  Spaces before(uint64_t version) const {
    const View& view = context_.view;
    const Spaces now = selected_.of(view);
    Spaces then = now;
    for (const Kind kind : kUsers) {
      const Changes& changes = view.changes(kind);
      for (uint64_t at = view.after(kind, version).value_or(changes.begin()); at < changes.end();
           ++at) {
        const Change& change = changes.at(at);
        if (change.type == Change::Type::touched || (kind == Kind::event && change.key.job != 0))
          continue;
        const auto ns = space_of(view, selected_.viewer, change);
        if (!ns || !selected_.matches(*ns)) continue;
        if (now.contains(*ns))
          then.erase(*ns);
        else
          then.insert(*ns);
      }
    }
    return then;
  }

  kj::Promise<void> round() {
    if (context_.draining || exchange_.expired || context_.timer.now() >= ends_)
      return kj::READY_NOW;
    return context_.turn(who_).then([this] { return piece(); });
  }

  kj::Promise<void> piece() {
    const uint64_t version = context_.view.version();
    Spaces now = selected_.of(context_.view);
    std::string text;
    for (const std::string& ns : now)
      if (!told_.contains(ns)) tell(text, "ADDED", ns, version);
    for (const std::string& ns : told_)
      if (!now.contains(ns)) tell(text, "DELETED", ns, version);
    told_ = std::move(now);
    if (std::exchange(start_.initial_bookmark, false)) bookmark(text, true);
    if (text.empty()) return idle();
    return context_.write(*out_, std::move(text)).then([this] { return idle(); });
  }

  kj::Promise<void> idle() {
    const kj::Duration wait = std::min(ends_ - context_.timer.now(), context_.watch_idle);
    return context_.changed()
        .then([] { return true; })
        .exclusiveJoin(context_.timer.afterDelay(wait).then([] { return false; }))
        .then([this](bool changed) -> kj::Promise<void> {
          if (changed) return pause();
          if (exchange_.client_gone()) return kj::READY_NOW;
          if (!start_.bookmarks || context_.timer.now() >= ends_) return round();
          std::string text;
          bookmark(text, false);
          return context_.write(*out_, std::move(text)).then([this] { return round(); });
        });
  }

  kj::Promise<void> pause() {
    return context_.timer.afterDelay(std::min(kLookPause, 4 * context_.gap())).then([this] {
      return round();
    });
  }

  void tell(std::string& text, const char* type, const std::string& ns, uint64_t version) {
    add(text, type, shown(ns, version, form_, std::exchange(columns_, false)));
  }

  void bookmark(std::string& text, bool initial_end) const {
    OrderedJson mark = is_table(form_) ? table({}, context_.view.version(), false)
                                       : object("", context_.view.version(), form_);
    OrderedJson meta = {{"resourceVersion", mark["metadata"]["resourceVersion"]},
                        {"creationTimestamp", nullptr}};
    if (initial_end) meta["annotations"] = {{"k8s.io/initial-events-end", "true"}};
    mark["metadata"] = std::move(meta);
    add(text, "BOOKMARK", mark);
  }

  void add(std::string& text, const char* type, const OrderedJson& object) const {
    append_watch_event(text, type, encoded(dumped(object), encoding_), encoding_);
  }

  StreamContext& context_;
  Exchange& exchange_;
  const Selected selected_;
  const Form form_;
  const Encoding encoding_;
  WatchStart start_;
  const kj::TimePoint ends_;
  const std::string who_;
  Spaces told_;  // the namespaces of the accounts that the client knows
  bool columns_ = true;
  kj::Own<kj::AsyncOutputStream> out_;
};

}  // namespace

bool AccountRoutes::serves(const Url& url) {
  return account_path(url).has_value();
}

kj::Promise<void> AccountRoutes::answer(Exchange& exchange) {
  const auto [ns, name] = *account_path(exchange.url);
  if (exchange.method != kj::HttpMethod::GET) {
    exchange.headers.push_back({"Allow", "GET"});
    return exchange.send_status(405, "MethodNotAllowed",
                                "there is one service account in each namespace, default, which "
                                "can only be read");
  }
  auto wanted = selected(exchange, gate_, ns);
  if (!wanted.ok()) return exchange.bad(wanted.error().message);
  const Form form = exchange.form();
  if (!name.empty()) {
    if (name != kAccount || !wanted->of(view_).contains(ns))
      return exchange.send_error({Errc::not_found, "", {}}, "serviceaccounts", name);
    return exchange.send(200, dumped(shown(ns, view_.version(), form)) + "\n");
  }
  if (Status fits = check_list_options(exchange.url); !fits.ok())
    return exchange.bad_options(fits.error());
  if (!exchange.url.flag("watch"))
    return exchange.send(200, dumped(list(wanted->of(view_), view_.version(), form)) + "\n");
  WatchStart start;
  if (auto refused = watch_start(exchange, view_, Kind::name_space, options_, start))
    return kj::mv(*refused);
  const auto since = whole_number<uint64_t>(exchange.url.get("resourceVersion"));
  if (!start.initial && since && *since <= view_.version() && !known_since(view_, *since))
    return exchange.send_status(410, "Expired",
                                "too old resource version: " + std::to_string(*since) + " (" +
                                    std::to_string(view_.version()) + ")");
  auto place = kj::heap<Pool::Share>(streams_.watch_places, exchange.who());
  if (!place->take(1)) return too_many_watches(streams_, exchange);
  auto stream = kj::heap<AccountWatch>(streams_, exchange, std::move(*wanted), start, since);
  auto watching = stream->run();
  return watching.attach(kj::mv(stream), kj::mv(place));
}

}  // namespace muster::api
