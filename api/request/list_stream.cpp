#include "api/request/list_stream.hpp"

#include "api/kube/schema/protobuf.hpp"

#include <algorithm>
#include <deque>
#include <optional>

namespace muster::api {
namespace {

constexpr size_t kWriteBytes = 128 * 1024;  // approximate bytes per write
constexpr size_t kLooksAtOnce = 1024;       // jobs visited and objects judged per turn
constexpr uint64_t kPodsLeast = 128;        // pods of a job collected at a time: at least,
constexpr uint64_t kPodsMost = 32'768;      // and at most
constexpr size_t kProtobufMax = 16u << 20;  // bytes of a list that is sent as protobuf

class ListStream {
 public:
  ListStream(StreamContext& context, Exchange& exchange, const Query& query, ListPage page)
      : context_(context),
        exchange_(exchange),
        query_(query),
        wanted_(query_.wanted()),
        page_(std::move(page)),
        form_(exchange.form()),
        who_(exchange.who()),
        memory_(context.watch_memory, exchange.who()) {
    if (page_.version == 0) page_.version = context_.view.version();
    begin();
    if (exchange.accepted.encoding == Encoding::protobuf)
      framed_.emplace(api_version(query_.kind, form_), kind_in(query_.kind, form_));
    else
      open();
  }

  kj::Promise<void> run() {
    return context_.turn(who_).then([this] { return piece(); });
  }

 private:
  void begin() {
    items_.clear();
    jobs_done_ = false;
    sent_ = passed_ = 0;
    more_after_.reset();
    if (of_no_job()) {
      context_.view.each(query_.kind, query_.ns, nullptr, [this](const Shown& s) { take(s); });
    } else if (page_.after.job == kAfterJobs) {
      rest();
    } else {
      // Start just before the job of the last object sent, as it may have more objects.
      at_ = {page_.after.ns, page_.after.name, page_.after.job == 0 ? 0 : page_.after.job - 1};
      if (!page_.resumed) at_ = {query_.ns, "", 0};
    }
  }

  void open() {
    piece_ = context_.renderer.list_head(query_.kind, form_);
    out_ = exchange_.open(exchange_.accepted.encoding == Encoding::yaml ? "application/yaml"
                                                                        : kJsonType);
  }

  // Whether there is more to look at after this turn.
  bool look() {
    const size_t begun = framed_ ? framed_->bytes() : 0;
    for (size_t looks = 0; looks < kLooksAtOnce; ++looks) {
      if (!go_on()) return false;
      if (piece_.size() >= kWriteBytes) break;
      if (framed_ && framed_->bytes() - begun >= kWriteBytes) break;
    }
    return true;
  }

  kj::Promise<void> piece() {
    const bool last = !look();
    if (framed_) return framed_piece(last);
    if (last) piece_ += context_.renderer.list_tail(meta());
    std::string text;
    text.swap(piece_);
    return context_.write(*out_, std::move(text)).then([this, last]() -> kj::Promise<void> {
      if (last) return kj::READY_NOW;
      return run();
    });
  }

  kj::Promise<void> framed_piece(bool last) {
    const size_t more = 2 * (framed_->bytes() - held_);  // its frame is a copy
    held_ = framed_->bytes();
    if (framed_->bytes() > kProtobufMax || !memory_.take(more)) {
      framed_.reset();
      memory_.give_back();
      if (!exchange_.accepted.json_too)
        return exchange_.send_status(
            406, "NotAcceptable",
            "the list is longer than 16 MiB, or this user's lists are, and "
            "can be sent only as application/json; ask for pages with "
            "limit");
      // Again from the start, since nothing has been sent yet.
      begin();
      open();
      return run();
    }
    if (!last) return run();
    const Json metadata = Json::parse(context_.renderer.list_meta(meta()));
    return exchange_.send_bytes(200, framed_->framed(metadata), kProtobufType);
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

  // Collects more objects of this job, or those of the next. False: there are none.
  bool next_job() {
    if (of_no_job() || jobs_done_) return false;
    if (more_after_) {
      take_pods(*more_after_);
    } else if (const auto job = context_.view.next_job(query_.ns, at_)) {
      at_ = *job;
      const bool resumed = page_.resumed && std::get<JobId>(at_) == page_.after.job;
      passed_ = resumed ? page_.passed : 0;
      if (query_.kind == Kind::pod)
        take_pods(resumed ? std::optional(page_.after.pod) : std::nullopt);
      else
        context_.view.each_of(query_.kind, at_, wanted_, [this](const Shown& s) { take(s); });
    } else {
      rest();
    }
    return true;
  }

  // A job may have 10^6 pods, so a page must not look at all of them; nor at the job's finished
  // pods, which are in no order, too often if it shows few of those that it looks at.
  void take_pods(const std::optional<PodKey>& after) {
    const uint64_t needed = page_.limit == 0 ? kPodsMost : page_.limit - sent_ + 1;
    const uint64_t most = std::clamp(needed, std::max(kPodsLeast, twice_), kPodsMost);
    twice_ = std::min(2 * most, kPodsMost);
    context_.view.pods_after(at_, wanted_, after, most,
                             [this](const Shown& shown) { items_.push_back(key_of(shown)); });
    more_after_.reset();
    if (items_.size() == most) more_after_ = items_.back().pod;
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
    return shown.kind == Kind::job || shown.event->nr <= page_.after.nr;
  }

  void tell(const Shown& each) {
    const Shown shown = query_.viewer.as_seen(each);
    last_ = position_of(shown);
    ++passed_;
    if (framed_) {
      ++sent_;
      std::string text;
      context_.renderer.object(text, shown, form_);
      return framed_->add(Json::parse(text));
    }
    if (sent_++ != 0) piece_ += ',';
    if (is_table(form_))
      context_.renderer.row(piece_, shown, form_);
    else
      context_.renderer.object(piece_, shown, form_);
  }

  // Kubernetes calls the count an estimate: pods that have gone since an earlier page are missing.
  uint64_t left_of_job() const {
    const JobView* job =
        more_after_ ? context_.view.jobs().in_memory(std::get<JobId>(at_)) : nullptr;
    const uint64_t pods = job ? job->pods.size() : 0;
    return std::max<uint64_t>(items_.size(), pods - std::min(pods, passed_));
  }

  Renderer::ListMeta meta() const {
    Renderer::ListMeta meta{page_.version, "", 0};
    if (items_.empty()) return meta;
    ListPage next = page_;
    next.passed = passed_;
    meta.token = continue_token(next, last_);
    // As in Kubernetes, the count is given only without selectors.
    if (!query_.labels.empty() || !query_.fields.empty() || query_.viewer.uid) return meta;
    if (of_no_job() || jobs_done_) {
      meta.remaining = items_.size();
    } else if (const auto others = context_.view.count_after(query_.kind, query_.ns, at_)) {
      meta.remaining = left_of_job() + *others;
      if (query_.kind == Kind::event)
        context_.view.each_kept(core::KeptKind::event, query_.ns,
                                [&meta](const Shown&) { ++meta.remaining; });
    }
    return meta;
  }

  StreamContext& context_;
  Exchange& exchange_;
  const Query query_;
  const Wanted wanted_;
  ListPage page_;
  Form form_;
  const std::string who_;
  View::Place at_;         // the job being listed
  std::deque<Key> items_;  // its objects still to be judged; for kinds without a job, all
  std::optional<PodKey> more_after_;  // it may have more pods than these
  uint64_t twice_ = 0;                // as many as were collected the last time
  uint64_t passed_ = 0;               // its pods on this page and on earlier ones
  bool jobs_done_ = false;
  uint64_t sent_ = 0;
  Position last_;
  std::string piece_;
  std::optional<ProtobufList> framed_;  // of a list in protobuf
  Pool::Share memory_;                  // for that
  size_t held_ = 0;                     // bytes of it that memory_ has taken
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
