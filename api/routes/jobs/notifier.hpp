// Notifier: tells of the ends of jobs whose owners asked for it (core/job/shown/notice.hpp).
//
// The command of muster.dev/notify becomes a job of the same owner, with the environment and the
// working directory of the job that has ended; mail goes to the site's sendmail. Then the job is
// marked (muster.dev/notified). A crash in between repeats both under the same identity: the
// command's job exists already, and the mail has the same Message-ID. A failure is tried again for
// a day and shown as an event of the job.
//
// Whom to tell, and what, is read again when the job changes. Belongs to the API thread.
#pragma once

#include "api/routes/jobs/job_writer.hpp"
#include "core/job/shown/notice.hpp"

#include <kj/async.h>
#include <kj/timer.h>

#include <cstdint>
#include <map>
#include <memory>
#include <string>

namespace muster::api {

// The job that runs `command` after the end of `job`.
Json notice_job(const core::Job& job, const std::string& command);

class Notifier final : private JobWriter, private kj::TaskSet::ErrorHandler {
 public:
  Notifier(const RouteContext& context, kj::Timer& timer)
      : JobWriter(context), timer_(timer), tasks_(*this) {}
  // Call it when the View has changed.
  void look();
  void start();

 private:
  // What is still to be done for a job.
  struct Notice {
    JobId job = 0;
    uint64_t version = 0;  // View::owner_version, as of which the rest was read
    core::JobMeta meta;
    core::NoticeWishes wishes;
    Json command_job;
    std::string mail;
    std::vector<std::string> sent;  // whom it was sent to
    Millis ended_ms = 0;
    Millis pause_ms = 0;  // before the next attempt
    Millis next_ms = 0;
    bool busy = false;
    std::string complaint;  // the last one that an event shows
  };
  using NoticePtr = std::shared_ptr<Notice>;

  void look_at_all();
  bool waits_for_desk(const Notice& notice) const;
  bool is_there(const Notice& notice) const;
  NoticePtr read(JobId id, const NoticePtr& before) const;
  void begin(NoticePtr notice);
  kj::Promise<Status> run_command(const NoticePtr& notice);
  kj::Promise<Status> send_mail(const NoticePtr& notice);
  kj::Promise<void> mark(const NoticePtr& notice);
  void failed(Notice& notice, const std::string& why);
  void report(Notice& notice, const std::string& message);
  void taskFailed(kj::Exception&& failed) override;

  kj::Timer& timer_;
  std::map<JobId, NoticePtr> open_;
  Millis next_look_ms_ = 0;  // before then, only something new is looked at
  size_t busy_ = 0;
  bool mailing_ = false;
  bool running_ = false;
  bool waits_ = false;  // for the time of a further attempt
  kj::TaskSet tasks_;
};

}  // namespace muster::api
