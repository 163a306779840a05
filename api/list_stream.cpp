#include "api/list_stream.hpp"

#include <algorithm>
#include <deque>
#include <tuple>

namespace muster::api {
namespace {

constexpr size_t kPiece = 128 * 1024;  // bytes written at once, about

// The name of an object in little: pods are many. `what` is a pod's index and attempt, the number
// of an event or a node.
struct Item {
  JobId job = 0;
  uint64_t what = 0;
};

Item item_of(const Shown& shown) {
  const Key key = key_of(shown);
  if (key.kind != Kind::pod) return {key.job, key.nr};
  return {key.job, uint64_t{key.pod.index} << 32 | key.pod.attempt};
}

Key key_of(Kind kind, const Item& item) {
  if (kind != Kind::pod) return {kind, item.job, item.what, {}};
  return {kind,
          item.job,
          0,
          {static_cast<uint32_t>(item.what >> 32), static_cast<uint32_t>(item.what)}};
}

class ListStream {
 public:
  ListStream(StreamContext& context, Exchange& exchange, const Query& query, ListPage page)
      : context_(context), query_(query), page_(std::move(page)), form_(exchange.form()) {
    if (!page_.resumed) page_.version = context_.view.version();
    collect();
    Renderer::ListMeta meta{page_.version, "", 0};
    if (const auto last = cut()) {
      meta.token = continue_token(page_, *last);
      // As Kubernetes: only of what is not selected.
      if (query_.labels.empty() && query_.fields.empty()) meta.remaining = matched_ - page_.limit;
    }
    piece_ = context_.renderer.list_head(query_.kind, form_, meta);
    out_ = exchange.open("application/json");
  }

  kj::Promise<void> run() {
    for (; !items_.empty() && piece_.size() < kPiece; items_.pop_front())
      if (const auto shown = context_.view.find(key_of(query_.kind, items_.front()))) tell(*shown);
    const bool last = items_.empty();
    if (last) piece_ += context_.renderer.list_tail();
    std::string piece;
    piece.swap(piece_);
    return context_.write(*out_, std::move(piece)).then([this, last]() -> kj::Promise<void> {
      if (last) return kj::READY_NOW;
      return run();
    });
  }

 private:
  // All that match, from the page's beginning on. Once there are more than the page holds, the
  // others are only counted, and not even that when something is selected.
  void collect() {
    const View& view = context_.view;
    const bool counted = query_.labels.empty() && query_.fields.empty();
    size_t run = 0;  // where the objects of the job begin that came last
    auto sort_run = [&] {
      if (query_.kind == Kind::pod)  // they come in the order of their lives
        std::sort(items_.begin() + static_cast<ptrdiff_t>(run), items_.end(),
                  [](const Item& a, const Item& b) { return a.what < b.what; });
      run = items_.size();
    };
    if (query_.kind == Kind::job && counted) return collect_jobs();
    auto before_page = [&](std::string_view ns, std::string_view name) {
      return page_.resumed && std::tie(ns, name) < std::tie(page_.after.ns, page_.after.name);
    };
    const Wanted wanted(
        [&](const core::Job& job) {
          const core::JobMeta& meta = job.object().meta;
          return (counted || !more()) && !before_page(meta.ns, meta.name) && query_.wants(job);
        },
        [&](const std::string& ns, const std::string& name, const RestingJob& job) {
          return (counted || !more()) && !before_page(ns, name) && query_.wants_resting(name, job);
        });
    view.each(query_.kind, query_.ns, wanted, [&](const Shown& shown) {
      if (!query_.matches(view, shown)) return;
      if (page_.resumed && position_of(shown) <= page_.after) return;
      ++matched_;
      const Item item = item_of(shown);
      if (!items_.empty() && items_.back().job != item.job) sort_run();
      // A job that the page may end in is collected whole, to be sorted.
      if (more() && (items_.empty() || items_.back().job != item.job)) return;
      items_.push_back(item);
    });
    sort_run();
  }
  // Their names are enough, so that none of those at rest is read for being counted.
  void collect_jobs() {
    context_.view.each_job_name(query_.ns,
                                [&](const std::string& ns, const std::string& name, JobId id) {
                                  if (page_.resumed && Position{ns, name, id, {}, 0} <= page_.after)
                                    return;
                                  ++matched_;
                                  if (!more()) items_.push_back({id, 0});
                                });
  }
  bool more() const { return page_.limit != 0 && matched_ > page_.limit; }

  // Leaves the page's objects; the last of them if there are more.
  std::optional<Position> cut() {
    if (!more()) return std::nullopt;
    if (items_.size() > page_.limit) items_.resize(page_.limit);
    const auto last = context_.view.find(key_of(query_.kind, items_.back()));
    MUSTER_CHECK(last.has_value());  // it was collected just now
    return position_of(*last);
  }

  void tell(const Shown& shown) {
    if (!first_) piece_ += ',';
    first_ = false;
    if (form_ == Form::table)
      context_.renderer.row(piece_, shown);
    else
      context_.renderer.object(piece_, shown);
  }

  StreamContext& context_;
  Query query_;
  ListPage page_;
  Form form_;
  std::deque<Item> items_;  // still to be told
  uint64_t matched_ = 0;    // from the page's beginning on
  bool first_ = true;
  std::string piece_;
  kj::Own<kj::AsyncOutputStream> out_;
};

}  // namespace

kj::Promise<void> stream_list(StreamContext& context, Exchange& exchange, const Query& query,
                              ListPage page) {
  auto stream = kj::heap<ListStream>(context, exchange, query, std::move(page));
  auto promise = stream->run();
  return promise.attach(kj::mv(stream));
}

}  // namespace muster::api
