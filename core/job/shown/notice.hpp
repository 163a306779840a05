// Notice: what is told of a job's end to those who asked for it (muster.dev/mail and notify).
//
// The job remembers that it was told in the annotation muster.dev/notified, so it is told once,
// whatever restarts. What a crash may repeat has the same identity: the mail its Message-ID, the
// command its job's name.
#pragma once

#include "core/job/fold/job.hpp"
#include "core/job/rules/decide.hpp"
#include "core/spec/fields/annotations.hpp"

#include <optional>
#include <string>
#include <string_view>

namespace muster::core {

// What is left of the job that runs the command, once it has finished.
constexpr int32_t kNoticeTtlS = 24 * 3600;

// The end of a finished job.
struct JobEnd {
  bool complete = false;
  std::string reason, message;  // of its condition Complete or Failed
  Millis at_ms = 0;
};
std::optional<JobEnd> end_of(const Job& job);

// Headers and text of the mail, with line feeds. `site`: the coordinator's host name.
std::string notice_mail(const Job& job, const NoticeWishes& wishes, std::string_view site);

// What the command finds in its environment.
StringMap notice_variables(const Job& job);

// The name of the job that runs the command: a DNS label that follows from the job's name and uid.
std::string notice_job_name(const JobMeta& meta);

}  // namespace muster::core
