#include "api/request/list_stream.hpp"

#include <algorithm>
#include <deque>

namespace muster::api {
namespace {

constexpr size_t kWriteBytes = 128 * 1024;  // approximate bytes per write
constexpr size_t kLooksAtOnce = 1024;       // jobs visited and objects judged per turn

class ListStream {
 public:
  ListStream(StreamContext& context, Exchange& exchange, const Query& query, ListPage page)
      : context_(context),
        query_(query),
        wanted_(query_.wanted()),
        page_(std::move(page)),
        form_(exchange.form()),
        who_(exchange.who()) {
    if (!page_.resumed) page_.version = context_.view.version();
    piece_ = context_.renderer.list_head(query_.kind, form_);
    if (of_no_job()) {
      context_.view.each(query_.kind, query_.ns, nullptr, [this](const Shown& s) { take(s); });
    } else if (page_.after.job == kAfterJobs) {
      rest();
    } else {
      // Start just before the job of the last object sent, as it may have more objects.
      at_ = {page_.after.ns, page_.after.name, page_.after.job == 0 ? 0 : page_.after.job - 1};
      if (!page_.resumed) at_ = {query_.ns, "", 0};
    }
    out_ = exchange.open("application/json");
  }

  kj::Promise<void> run() {
    return context_.turn(who_).then([this] { return piece(); });
  }

 private:
  kj::Promise<void> piece() {
    bool last = false;
    for (size_t looks = 0; !last && looks < kLooksAtOnce && piece_.size() < kWriteBytes; ++looks)
      last = !go_on();
    if (last) piece_ += context_.renderer.list_tail(meta());
    std::string text;
    text.swap(piece_);
    return context_.write(*out_, std::move(text)).then([this, last]() -> kj::Promise<void> {
      if (last) return kj::READY_NOW;
      return run();
    });
  }

  // Looks at the next object or job. False: there are no more objects, or the page is full and the
  // first of items_ begins the next one.
  bool go_on() {
    if (items_.empty()) return next_job();
    // Objects removed meanwhile are left out; a watch from the list's version reports them.
    if (const auto shown = context_.view.listed(items_.front());
        shown && query_.matches(context_.view, *shown)) {
      if (page_.limit != 0 && sent_ == page_.limit) return false;
      tell(*shown);
    }
    items_.pop_front();
    return true;
  }

  // Collects the objects of the next job. False: there is none.
  bool next_job() {
    if (of_no_job() || jobs_done_) return false;
    if (const auto job = context_.view.next_job(query_.ns, at_)) {
      at_ = *job;
      context_.view.each_of(query_.kind, at_, wanted_, [this](const Shown& shown) { take(shown); });
      sort();
    } else {
      rest();
    }
    return true;
  }

  // After the jobs come the events that clients wrote.
  void rest() {
    jobs_done_ = true;
    if (query_.kind == Kind::event)
      context_.view.each_kept(core::KeptKind::event, query_.ns,
                              [this](const Shown& s) { take(s); });
  }

  bool of_no_job() const {
    return query_.kind == Kind::node || kept_kind_of(query_.kind).has_value();
  }

  void take(const Shown& shown) {
    if (page_.resumed && sent_before(shown)) return;
    items_.push_back(key_of(shown));
  }

  // Whether it was on an earlier page. Jobs before that of the last object sent are not visited.
  bool sent_before(const Shown& shown) const {
    if (shown.kind == Kind::node) return shown.node->name <= page_.after.name;
    if (shown.kept) return page_.after.job == kAfterJobs && position_of(shown) <= page_.after;
    if (shown.job->id() != page_.after.job) return false;
    if (shown.kind == Kind::pod) return shown.pod->key <= page_.after.pod;
    return shown.kind == Kind::job || shown.event->nr <= page_.after.nr;
  }

  // Pods of a job are listed by index and attempt.
  void sort() {
    if (query_.kind == Kind::pod && !std::is_sorted(items_.begin(), items_.end()))
      std::sort(items_.begin(), items_.end());
  }

  void tell(const Shown& each) {
    const Shown shown = query_.viewer.as_seen(each);
    if (sent_++ != 0) piece_ += ',';
    last_ = position_of(shown);
    if (form_ == Form::table)
      context_.renderer.row(piece_, shown);
    else
      context_.renderer.object(piece_, shown, form_);
  }

  Renderer::ListMeta meta() const {
    Renderer::ListMeta meta{page_.version, "", 0};
    if (items_.empty()) return meta;
    meta.token = continue_token(page_, last_);
    // As in Kubernetes, the count is given only without selectors.
    if (!query_.labels.empty() || !query_.fields.empty() || query_.viewer.uid) return meta;
    if (of_no_job() || jobs_done_) {
      meta.remaining = items_.size();
    } else if (const auto others = context_.view.count_after(query_.kind, query_.ns, at_)) {
      meta.remaining = items_.size() + *others;
      if (query_.kind == Kind::event)
        context_.view.each_kept(core::KeptKind::event, query_.ns,
                                [&meta](const Shown&) { ++meta.remaining; });
    }
    return meta;
  }

  StreamContext& context_;
  const Query query_;
  const Wanted wanted_;
  ListPage page_;
  Form form_;
  const std::string who_;
  View::Place at_;         // the job being listed
  std::deque<Key> items_;  // its objects still to be judged; for kinds without a job, all
  bool jobs_done_ = false;
  uint64_t sent_ = 0;
  Position last_;
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
