#include "core/spec/fields/annotations.hpp"

#include "core/spec/fields/after.hpp"
#include "core/spec/fields/limit_signal.hpp"
#include "core/spec/fields/owner.hpp"
#include "core/spec/fields/process_settings.hpp"
#include "core/spec/values/duration.hpp"
#include "core/spec/values/inputs.hpp"
#include "core/spec/values/mail.hpp"
#include "core/spec/values/names.hpp"

#include <algorithm>
#include <charconv>

namespace muster::core {
namespace {

std::optional<Millis> read_duration(const StringMap& annotations, std::string_view key) {
  auto it = annotations.find(std::string(key));
  if (it == annotations.end()) return std::nullopt;
  auto span = parse_duration(it->second);
  return span ? std::optional<Millis>(*span) : std::nullopt;
}

// The value of an annotation; empty if it is absent.
std::string own_value(const StringMap& annotations, std::string_view key) {
  auto it = annotations.find(std::string(key));
  return it == annotations.end() ? std::string() : it->second;
}

// If present, the annotation must be one of two words.
void validate_words(const StringMap& annotations, std::string_view key, const char* one,
                    const char* other, Violations& found) {
  auto it = annotations.find(std::string(key));
  if (it == annotations.end() || it->second == one || it->second == other) return;
  found.invalid("metadata.annotations[" + it->first + "]", it->second,
                "must be \"" + std::string(one) + "\" or \"" + other + "\"");
}

}  // namespace

std::vector<std::string> known_annotations() {
  std::vector<std::string> known;
  for (const std::string_view key : {kBackoffBaseKey, kBackoffMaxKey,   kRestartDelayKey,
                                     kGangKey,        kMpiKey,          kRestartKey,
                                     kPlacementKey,   kStartFailureKey, kDisruptionsMaxKey,
                                     kBackoffKey,     kScaleDownKey,    kFenceAfterKey,
                                     kIndexesKey,     kInputsKey,       kInputsFileKey,
                                     kPrivateTmpKey,  kRetryOfKey,      kRoundKey,
                                     kAfterKey,       kNiceKey,         kUmaskKey,
                                     kUlimitsKey,     kStdoutKey,       kStderrKey,
                                     kSignalKey,      kQueueKey,        kMailKey,
                                     kNotifyKey,      kNotifyOnKey,     kNotifiedKey,
                                     kRetryMemoryKey, kRetryTimeKey,    kBeginKey,
                                     kHoldKey})
    known.emplace_back(key.substr(kOwnPrefix.size()));
  for (const std::string_view key : kOwnerKeys) known.emplace_back(key.substr(kOwnPrefix.size()));
  return known;
}

JobAnnotations read_annotations(const StringMap& annotations) {
  JobAnnotations read;
  read.backoff_base_ms = read_duration(annotations, kBackoffBaseKey);
  read.backoff_max_ms = read_duration(annotations, kBackoffMaxKey);
  read.restart_delay_ms =
      read_duration(annotations, kRestartDelayKey).value_or(read.restart_delay_ms);
  auto gang = annotations.find(std::string(kGangKey));
  read.mpi = mpi_of(annotations);
  read.gang = gang != annotations.end() ? gang->second == "true" : read.mpi.has_value();
  // Every rank needs all the others.
  read.restart_gang = read.gang && (own_value(annotations, kRestartKey) == "gang" ||
                                    (read.mpi && read.mpi->direct));
  const std::string placement = own_value(annotations, kPlacementKey);
  if (placement == "pack") read.placement = PlacementChoice::pack;
  if (placement == "spread") read.placement = PlacementChoice::spread;
  read.start_failure_fails_job = start_failure_fails_job(annotations);
  read.backoff_yields = own_value(annotations, kBackoffKey) == "yield";
  read.surplus_finishes = own_value(annotations, kScaleDownKey) == "finish";
  read.fence_after_ms = read_duration(annotations, kFenceAfterKey);
  read.private_tmp = own_value(annotations, kPrivateTmpKey) == "true";
  if (auto set = annotations.find(std::string(kIndexesKey)); set != annotations.end())
    if (auto indexes = IndexSet::parse_strict(set->second, kAnyIndex); indexes.ok())
      read.indexes = std::move(*indexes);
  return read;
}

NoticeWishes notice_wishes(const StringMap& annotations) {
  NoticeWishes wishes;
  if (const auto it = annotations.find(std::string(kMailKey)); it != annotations.end())
    if (auto addresses = parse_mail(it->second); addresses.ok())
      wishes.mail = std::move(*addresses);
  wishes.command = own_value(annotations, kNotifyKey);
  wishes.only_failures = own_value(annotations, kNotifyOnKey) == "fail";
  return wishes;
}

bool start_failure_fails_job(const StringMap& annotations) {
  auto action = annotations.find(std::string(kStartFailureKey));
  return action != annotations.end() && action->second == "FailJob";
}

std::optional<int32_t> disruptions_max(const StringMap& annotations) {
  const auto it = annotations.find(std::string(kDisruptionsMaxKey));
  if (it == annotations.end()) return std::nullopt;
  int32_t most = 0;
  const std::string& text = it->second;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), most);
  if (error != std::errc() || end != text.data() + text.size() || most < 0) return std::nullopt;
  return most;
}

void validate_annotations(const StringMap& annotations, Violations& found) {
  for (std::string_view key : {kBackoffBaseKey, kBackoffMaxKey, kRestartDelayKey}) {
    auto it = annotations.find(std::string(key));
    if (it == annotations.end()) continue;
    if (auto span = parse_duration(it->second); !span)
      found.invalid("metadata.annotations[" + it->first + "]", it->second, span.error().message);
  }
  if (auto it = annotations.find(std::string(kFenceAfterKey)); it != annotations.end()) {
    auto span = parse_duration(it->second);
    if (!span)
      found.invalid("metadata.annotations[" + it->first + "]", it->second, span.error().message);
    else if (*span < kFenceAfterMin || *span > kFenceAfterMax)
      found.invalid("metadata.annotations[" + it->first + "]", it->second, "must be 15s to 24h");
  }
  if (auto it = annotations.find(std::string(kQueueKey)); it != annotations.end())
    for (const std::string& why : dns_label_errors(it->second))
      found.invalid("metadata.annotations[" + it->first + "]", it->second, why);
  validate_words(annotations, kGangKey, "true", "false", found);
  validate_words(annotations, kPrivateTmpKey, "true", "false", found);
  validate_words(annotations, kRestartKey, "pod", "gang", found);
  validate_words(annotations, kPlacementKey, "pack", "spread", found);
  validate_words(annotations, kStartFailureKey, "FailJob", "Count", found);
  validate_words(annotations, kBackoffKey, "hold", "yield", found);
  validate_words(annotations, kScaleDownKey, "end", "finish", found);
  validate_notice(annotations, found);
}

void validate_notice(const StringMap& annotations, Violations& found) {
  const auto path = [](std::string_view key) {
    return "metadata.annotations[" + std::string(key) + "]";
  };
  const auto mail = annotations.find(std::string(kMailKey));
  if (mail != annotations.end())
    if (auto addresses = parse_mail(mail->second); !addresses.ok())
      found.invalid(path(kMailKey), mail->second, addresses.error().message);
  const auto command = annotations.find(std::string(kNotifyKey));
  if (command != annotations.end()) {
    if (command->second.empty())
      found.invalid(path(kNotifyKey), "", "must be a command line of sh");
    else if (command->second.size() > kNotifyMax)
      found.invalid_object(path(kNotifyKey),
                           "must be at most " + std::to_string(kNotifyMax) + " bytes");
    else if (command->second.find('\0') != std::string::npos)
      found.invalid_object(path(kNotifyKey), "must not contain a null byte");
  }
  validate_words(annotations, kNotifyOnKey, "end", "fail", found);
  const auto when = annotations.find(std::string(kNotifyOnKey));
  if (when != annotations.end() && mail == annotations.end() && command == annotations.end())
    found.invalid(path(kNotifyOnKey), when->second,
                  "requires " + std::string(kMailKey) + " or " + std::string(kNotifyKey));
}

void validate_mpi(const StringMap& annotations, const JobSpec& spec, Violations& found) {
  auto mpi = annotations.find(std::string(kMpiKey));
  if (mpi == annotations.end()) return;
  const std::string path = "metadata.annotations[" + mpi->first + "]";
  if (auto options = parse_mpi(mpi->second); !options.ok())
    found.invalid(path, mpi->second, options.error().message);
  else if (!spec.indexed())
    found.invalid(path, mpi->second, "requires indexed completion mode");
}

void validate_gang(const StringMap& annotations, const JobSpec& spec, Violations& found) {
  if (!read_annotations(annotations).gang || !spec.parallelism) return;
  const int32_t pods = std::min(*spec.parallelism, spec.completions.value_or(*spec.parallelism));
  if (pods > kGangMax)
    found.invalid("spec.parallelism", *spec.parallelism,
                  "must be less than or equal to " + std::to_string(kGangMax) +
                      " when the pods start together (" + std::string(kGangKey) + ")");
}

void validate_each(const StringMap& annotations, const JobSpec& spec, Violations& found) {
  const std::vector<After> all = after_of(annotations);
  if (std::ranges::find(all, Needed::each, &After::needed) == all.end()) return;
  const std::string path = "metadata.annotations[" + std::string(kAfterKey) + "]";
  const std::string text = own_value(annotations, kAfterKey);
  if (!spec.indexed())
    return found.invalid(path, text, "each:JOB requires indexed completion mode");
  if (read_annotations(annotations).gang)
    found.invalid(path, text,
                  "each:JOB starts indexes one by one, but the pods of this job start together (" +
                      std::string(kGangKey) + " or " + std::string(kMpiKey) + ")");
}

void validate_restart(const StringMap& annotations, const JobSpec& spec, Violations& found) {
  if (own_value(annotations, kRestartKey) != "gang") return;
  const std::string path = "metadata.annotations[" + std::string(kRestartKey) + "]";
  if (!spec.indexed()) return found.invalid(path, "gang", "requires indexed completion mode");
  if (!read_annotations(annotations).gang)
    found.invalid(path, "gang", "requires " + std::string(kGangKey) + ": \"true\"");
}

void validate_disruptions_max(const StringMap& annotations, const JobSpec& spec,
                              Violations& found) {
  const auto it = annotations.find(std::string(kDisruptionsMaxKey));
  if (it == annotations.end()) return;
  const std::string path = "metadata.annotations[" + it->first + "]";
  if (!disruptions_max(annotations))
    found.invalid(path, it->second, "must be a whole number from 0 to 2147483647");
  else if (!spec.backoff_limit_per_index)
    found.invalid(path, it->second, "requires spec.backoffLimitPerIndex");
}

void validate_indexes(const StringMap& annotations, const JobSpec& spec, Violations& found) {
  auto set = annotations.find(std::string(kIndexesKey));
  if (set == annotations.end()) return;
  const std::string path = "metadata.annotations[" + set->first + "]";
  if (!spec.indexed()) return found.invalid(path, set->second, "requires indexed completion mode");
  auto indexes = IndexSet::parse_strict(set->second, spec.completions.value_or(0));
  if (!indexes.ok())
    found.invalid(path, set->second, indexes.error().message);
  else if (indexes->empty())
    found.invalid(path, set->second, "must name at least one index");
}

void validate_inputs(const StringMap& annotations, const JobSpec& spec, Violations& found) {
  const auto lines = annotations.find(std::string(kInputsKey));
  const auto file = annotations.find(std::string(kInputsFileKey));
  const auto path = [](std::string_view key) {
    return "metadata.annotations[" + std::string(key) + "]";
  };
  for (const auto& one : {lines, file})
    if (one != annotations.end() && !spec.indexed())
      return found.invalid(path(one->first), one->second, "requires indexed completion mode");
  if (lines != annotations.end() && file != annotations.end())
    return found.forbidden(path(kInputsFileKey),
                           "may not be set together with " + std::string(kInputsKey));
  if (file != annotations.end() &&
      (!file->second.starts_with('/') || file->second.find('\0') != std::string::npos))
    return found.invalid(path(kInputsFileKey), file->second, "must be an absolute path");
  if (lines == annotations.end()) return;
  if (lines->second.find('\0') != std::string::npos)
    return found.invalid_object(path(kInputsKey), "must not contain a null byte");
  const auto table = InputTable::of(lines->second);
  if (!table) return found.invalid_object(path(kInputsKey), table.error().message);
  const auto wanted = static_cast<size_t>(std::max(0, spec.completions.value_or(0)));
  if (table->size() < wanted)
    found.invalid_object(path(kInputsKey), "has " + std::to_string(table->size()) +
                                               " lines, fewer than spec.completions (" +
                                               std::to_string(wanted) + ")");
}

}  // namespace muster::core
