#include "api/routes/jobs/notifier.hpp"

#include "api/kube/objects/event_object.hpp"
#include "api/request/call.hpp"
#include "base/log.hpp"
#include "base/printable.hpp"
#include "base/text/time_text.hpp"
#include "core/spec/fields/process_settings.hpp"
#include "core/spec/values/expansion.hpp"

#include <algorithm>
#include <utility>

namespace muster::api {
namespace {

constexpr const char* kNotifierName = "muster-notifier";
constexpr size_t kNoticesBusyMax = 16;  // under way at a time
constexpr Millis kNoticePauseMs = 10'000, kNoticePauseMaxMs = 3'600'000;
constexpr Millis kNoticeLookMs = 2'000;
constexpr int64_t kCommandTimeS = 3600;
constexpr size_t kComplaintMax = 1024;  // bytes of an event

// Those of the ended job that say how and where its processes run.
constexpr std::string_view kInherited[] = {core::kQueueKey, core::kNiceKey, core::kUmaskKey,
                                           core::kUlimitsKey};

// The pod of the ended job, reduced to what the command needs: environment, directory, volumes.
Json command_pod(const Json& pod, const Json& env, const std::string& command) {
  Json out = {{"restartPolicy", "Never"}, {"activeDeadlineSeconds", kCommandTimeS}};
  for (const char* name : {"nodeSelector", "tolerations", "securityContext", "volumes"})
    if (pod.contains(name)) out[name] = pod[name];
  const Json& first = pod.at("containers").at(0);
  Json container = {{"name", "notify"}, {"command", {"sh", "-c", core::unexpanded(command)}}};
  for (const char* name : {"image", "workingDir", "envFrom", "volumeMounts", "securityContext"})
    if (first.contains(name)) container[name] = first[name];
  container["env"] = first.value("env", Json::array());
  for (const Json& one : env) container["env"].push_back(one);
  out["containers"] = Json::array({std::move(container)});
  return out;
}

core::JobObjectPtr marked(const core::JobObject& job, const std::string& when) {
  auto next = std::make_shared<core::JobObject>(job);
  const std::string key(core::kNotifiedKey);
  next->meta.annotations[key] = when;
  Json document = Json::parse(job.json);
  document["metadata"]["annotations"][key] = when;
  next->json = document.dump();
  return next;
}

}  // namespace

Json notice_job(const core::Job& job, const std::string& command) {
  const core::JobMeta& meta = job.object().meta;
  const Json document = Json::parse(job.object().json);
  Json annotations = Json::object();
  for (const std::string_view key : kInherited)
    if (const auto it = meta.annotations.find(std::string(key)); it != meta.annotations.end())
      annotations[it->first] = it->second;
  Json env = Json::array();
  for (const auto& [name, value] : core::notice_variables(job))
    env.push_back({{"name", name}, {"value", core::unexpanded(value)}});
  const Json& pod = document.at("spec").at("template").at("spec");
  return {{"apiVersion", "batch/v1"},
          {"kind", "Job"},
          {"metadata",
           {{"name", core::notice_job_name(meta)},
            {"namespace", meta.ns},
            {"annotations", std::move(annotations)}}},
          {"spec",
           {{"backoffLimit", 0},
            {"ttlSecondsAfterFinished", core::kNoticeTtlS},
            {"template", {{"spec", command_pod(pod, env, command)}}}}}};
}

void Notifier::start() {
  running_ = true;
  look();
}

void Notifier::look() {
  const auto& due = view_.jobs().notices();
  const Millis now = options_.now();
  if (!running_ || (due.empty() && open_.empty())) return;
  // Each commit calls this: usually there is nothing new.
  if (due.size() == open_.size() && now < next_look_ms_) return;
  look_at_all();
}

void Notifier::look_at_all() {
  const std::set<JobId> due = view_.jobs().notices();  // reading a job may change the set
  const Millis now = options_.now();
  std::erase_if(open_,
                [&due](const auto& one) { return !one.second->busy && !due.contains(one.first); });
  next_look_ms_ = now + kNoticePauseMaxMs;
  for (const JobId id : due) {
    NoticePtr& notice = open_[id];
    if (!notice || (!notice->busy && notice->version != view_.owner_version(id)))
      notice = read(id, notice);
    if (notice->busy) continue;
    next_look_ms_ = std::min(next_look_ms_, std::max(notice->next_ms, now + 1));
    if (notice->next_ms <= now && busy_ < kNoticesBusyMax && !waits_for_desk(*notice))
      begin(notice);
  }
  if (open_.empty() || std::exchange(waits_, true)) return;
  tasks_.add(timer_.afterDelay(kNoticeLookMs * kj::MILLISECONDS).then([this] {
    waits_ = false;
    look_at_all();
  }));
}

// Mail is sent one message at a time, and commands do not wait for it.
bool Notifier::waits_for_desk(const Notice& notice) const {
  return mailing_ && notice.command_job.is_null() && !notice.mail.empty();
}

// `before`: what was known of the job before it changed; null: nothing.
Notifier::NoticePtr Notifier::read(JobId id, const NoticePtr& before) const {
  auto notice = std::make_shared<Notice>();
  notice->job = id;
  notice->version = view_.owner_version(id);
  const auto shown = view_.find({Kind::job, id, 0, {}});
  if (!shown || !core::notice_due(*shown->job)) {
    notice->next_ms = options_.now() + kNoticePauseMaxMs;  // it cannot be read
    return notice;
  }
  const core::Job& job = *shown->job;
  notice->meta = job.object().meta;
  notice->wishes = core::notice_wishes(notice->meta.annotations);
  if (before) notice->sent = before->sent;
  if (!notice->wishes.command.empty())
    notice->command_job = notice_job(job, notice->wishes.command);
  if (!notice->wishes.mail.empty() && notice->wishes.mail != notice->sent)
    notice->mail = core::notice_mail(job, notice->wishes, options_.host_name);
  if (const auto end = core::end_of(job)) notice->ended_ms = end->at_ms;
  return notice;
}

void Notifier::begin(NoticePtr notice) {
  notice->busy = true;
  ++busy_;
  auto done = run_command(notice).then([this, notice](Status ran) -> kj::Promise<Status> {
    if (!ran) return ran;
    notice->command_job = nullptr;
    if (waits_for_desk(*notice)) return Status(Nothing{});
    return send_mail(notice);
  });
  tasks_.add(done.then([this, notice](Status told) -> kj::Promise<void> {
                   const bool over = options_.now() >= notice->ended_ms + core::kNoticeLifeMs;
                   if (over || (told && notice->mail.empty())) return mark(notice);
                   if (!told) failed(*notice, told.error().message);
                   return kj::READY_NOW;
                 })
                 .attach(kj::defer([this, notice] {
                   notice->busy = false;
                   --busy_;
                   next_look_ms_ = std::min(next_look_ms_, notice->next_ms);
                 })));
}

// Failures that no later attempt mends are reported and count as done.
kj::Promise<Status> Notifier::run_command(const NoticePtr& notice) {
  if (notice->command_job.is_null()) return Status(Nothing{});
  return create_for(core::owner_uid(notice->meta.annotations), notice->command_job, kNotifierName)
      .then([this, notice](Result<core::JobObjectPtr> made) -> Status {
        if (made.ok()) return Nothing{};
        const bool exists = made.error().code == Errc::exists;
        if (exists && is_there(*notice)) return Nothing{};
        const std::string why =
            "the job of " + std::string(core::kNotifyKey) + " was not created: " +
            (exists ? "another job is called " + made.error().message : made.error().message);
        if (!exists && made.error().code != Errc::invalid) return Error{Errc::unavailable, why, {}};
        report(*notice, why);
        return Nothing{};
      });
}

// Whether the job of the command exists: it has the same owner and runs the same.
bool Notifier::is_there(const Notice& notice) const {
  const auto found = view_.job(notice.meta.ns, core::notice_job_name(notice.meta));
  if (!found) return true;  // it came and went
  const core::JobObject& job = found->job->object();
  const auto& containers = job.spec.pod.containers;
  return core::owner_uid(job.meta.annotations) == core::owner_uid(notice.meta.annotations) &&
         containers.size() == 1 && containers[0].command.size() == 3 &&
         containers[0].command[2] == core::unexpanded(notice.wishes.command);
}

kj::Promise<Status> Notifier::send_mail(const NoticePtr& notice) {
  if (notice->mail.empty()) return Status(Nothing{});
  if (!backend_.sends_mail()) {
    report(*notice, "no mail was sent: the coordinator runs without --mail-program");
    notice->mail.clear();
    return Status(Nothing{});
  }
  mailing_ = true;
  Call call = new_call();
  backend_.send_mail(notice->wishes.mail, notice->mail, std::move(call.done));
  return call.promise
      .then([notice](Status sent) -> Status {
        if (!sent)
          return Error{Errc::unavailable, "the mail was not sent: " + sent.error().message, {}};
        notice->mail.clear();
        notice->sent = notice->wishes.mail;
        return Nothing{};
      })
      .attach(kj::defer([this] { mailing_ = false; }));
}

// A conflict shows as a change of the job, and so leads to another attempt.
kj::Promise<void> Notifier::mark(const NoticePtr& notice) {
  const auto shown = view_.find({Kind::job, notice->job, 0, {}});
  if (!shown || shown->job->hidden()) return kj::READY_NOW;
  const core::JobObjectPtr seen = shown->job->object_ptr();
  Call call = new_call();
  backend_.update_job(seen, marked(*seen, time_text(options_.now())), std::move(call.done));
  return call.promise.then([this, notice](Status written) {
    if (!written.ok() && written.error().code != Errc::not_found)
      notice->next_ms = options_.now() + kNoticeLookMs;
  });
}

void Notifier::failed(Notice& notice, const std::string& why) {
  notice.pause_ms = std::clamp(notice.pause_ms * 2, kNoticePauseMs, kNoticePauseMaxMs);
  notice.next_ms = options_.now() + notice.pause_ms;
  report(notice, why);
}

void Notifier::report(Notice& notice, const std::string& message) {
  if (std::exchange(notice.complaint, message) == message) return;
  log::warn("job {}/{}: {}", notice.meta.ns, notice.meta.name, message);
  auto event = std::make_shared<core::Kept>();
  *event = {.kind = core::KeptKind::event,
            .ns = notice.meta.ns,
            .name = notice.meta.name + "." + event_hash(notice.meta.uid + message),
            .uid = random_uid()};
  event->owner = core::owner_uid(notice.meta.annotations);
  const Millis now = options_.now();
  event->json = dumped(
      event_object(*event, {"Job", "batch/v1", notice.meta.ns, notice.meta.name, notice.meta.uid},
                   {.warning = true,
                    .reason = "FailedNotify",
                    .message = utf8_prefix(message, kComplaintMax),
                    .component = kNotifierName,
                    .first = now,
                    .last = now}));
  backend_.write_kept(nullptr, std::move(event), {}, [](const Status&) {});
}

void Notifier::taskFailed(kj::Exception&& failed) {
  log::error("the end of a job could not be told: {}", failed.getDescription().cStr());
}

}  // namespace muster::api
