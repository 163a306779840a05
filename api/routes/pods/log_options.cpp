#include "api/routes/pods/log_options.hpp"

#include "base/text/time_text.hpp"
#include "core/spec/values/violations.hpp"

#include <algorithm>

namespace muster::api {
namespace {

// As for all of Kubernetes' options: only absence, "0" and "false" are false.
bool flag_of(const Url& url, const char* name) {
  const auto found = url.query.find(name);
  if (found == url.query.end() || found->second == "0") return false;
  std::string text = found->second;
  std::transform(text.begin(), text.end(), text.begin(), [](unsigned char c) {
    return static_cast<char>(c >= 'A' && c <= 'Z' ? c + ('a' - 'A') : c);
  });
  return text != "false";
}

// In the words of Go's strconv.
Error not_a_number(const std::string& text) {
  const bool sign = text.starts_with('-') || text.starts_with('+');
  const bool digits =
      text.size() > (sign ? 1 : 0) && std::all_of(text.begin() + (sign ? 1 : 0), text.end(),
                                                  [](char c) { return c >= '0' && c <= '9'; });
  return invalid("strconv.ParseInt: parsing \"" + text +
                 "\": " + (digits ? "value out of range" : "invalid syntax"));
}

Result<std::optional<int64_t>> number_of(const Url& url, const char* name) {
  const auto found = url.query.find(name);
  if (found == url.query.end()) return std::optional<int64_t>();
  const std::string& text = found->second;
  const bool plus = text.size() > 1 && text[0] == '+' && text[1] != '-';
  const auto n = whole_number<int64_t>(std::string_view(text).substr(plus ? 1 : 0));
  if (!n) return not_a_number(text);
  return std::optional(*n);
}

// When lines must have been written; 0: whenever.
Result<Millis> since_of(const Url& url, Millis now_ms, core::Violations& found) {
  const auto seconds = number_of(url, "sinceSeconds");
  if (!seconds) return seconds.error();
  const std::string time = url.get("sinceTime");
  const bool has_time = url.query.contains("sinceTime");
  std::optional<Millis> instant;
  if (!time.empty() && time != "null") {
    instant = parse_time(time);
    if (!instant) return invalid("parsing time \"" + time + "\" as \"2006-01-02T15:04:05Z07:00\"");
  }
  if (*seconds && has_time) {
    found.forbidden("", "at most one of `sinceTime` or `sinceSeconds` may be specified");
    return Millis{0};
  }
  if (*seconds) {
    if (**seconds < 1) {
      found.invalid("sinceSeconds", **seconds, "must be greater than 0");
      return Millis{0};
    }
    return std::max<Millis>(0, **seconds > now_ms / 1000 ? 0 : now_ms - **seconds * 1000);
  }
  return std::max<Millis>(0, instant.value_or(0));
}

}  // namespace

Result<LogOptions> read_log_options(const Url& url, Millis now_ms) {
  LogOptions options;
  core::Violations found;
  options.container = url.get("container");
  options.follow = flag_of(url, "follow");
  options.previous = flag_of(url, "previous");
  options.timestamps = flag_of(url, "timestamps");
  const auto tail = number_of(url, "tailLines"), limit = number_of(url, "limitBytes"),
             offset = number_of(url, "offset");
  for (const auto* number : {&tail, &limit, &offset})
    if (!*number) return number->error();
  if (*tail && **tail < 0) found.nonnegative("tailLines", **tail);
  if (*limit && **limit < 1) found.invalid("limitBytes", **limit, "must be greater than 0");
  const auto since = since_of(url, now_ms, found);
  if (!since) return since.error();
  const std::string stream = url.get("stream");
  options.stream_given = !stream.empty();
  if (options.stream_given && stream != "All" && stream != "Stdout" && stream != "Stderr")
    found.not_supported("stream", stream, {"All", "Stdout", "Stderr"});
  if (auto violations = found.take(); !violations.empty())
    return Error{Errc::invalid, "the options are invalid", std::move(violations)};
  options.tail_lines = *tail;
  options.limit_bytes = *limit;
  options.since = *since;
  options.out = stream != "Stderr";
  options.err = stream != "Stdout";
  options.offset = offset->value_or(0);
  if (options.offset < 0) return invalid("offset: must not be negative");
  if (options.offset > 0 && (options.tail_lines || (options.out && options.err)))
    return invalid("offset: needs one stream, Stdout or Stderr, and no tailLines");
  return options;
}

}  // namespace muster::api
