#include "core/spec/values/output_pattern.hpp"

#include <algorithm>

namespace muster::core {
namespace {

constexpr std::string_view kConversions = "jiatnp";
constexpr char kAllConversions[] =
    "%j job, %i index, %a attempt, %t task of an array, %n node, %p pod, %% a percent sign";
constexpr size_t kDigitsMax = 20;
constexpr size_t kPathMax = 4096;  // as PATH_MAX

// A name never acts as a path, wherever it comes from.
std::string one_name(const std::string& text) {
  if (text.empty()) return "-";
  if (text == "." || text == "..") return "_";
  std::string name = text;
  std::replace(name.begin(), name.end(), '/', '_');
  return name;
}

std::string padded(const std::string& text, size_t digits) {
  return text.size() < digits ? std::string(digits - text.size(), '0') + text : text;
}

std::string digits_of(const std::optional<int64_t>& value, size_t digits) {
  return value ? padded(std::to_string(*value), digits) : "-";
}

}  // namespace

Result<OutputPattern> OutputPattern::parse(std::string_view text) {
  OutputPattern out;
  if (text.size() > kPathMax)
    return invalid("longer than " + std::to_string(kPathMax) + " bytes, the maximum for a path");
  out.text_ = text;
  std::string literal;
  const auto end_literal = [&] {
    if (!literal.empty()) out.parts_.push_back({.text = std::move(literal)});
    literal.clear();
  };
  for (size_t at = 0; at < text.size(); ++at) {
    if (text[at] != '%') {
      literal += text[at];
      continue;
    }
    const size_t from = at++;
    size_t digits = 0;
    while (at < text.size() && text[at] >= '0' && text[at] <= '9' && digits <= kDigitsMax)
      digits = digits * 10 + static_cast<size_t>(text[at++] - '0');
    const char conversion = at < text.size() ? text[at] : '\0';
    const std::string shown(text.substr(from, at + 1 - from));
    if (conversion == '%' && at == from + 1) {
      literal += '%';
      continue;
    }
    if (conversion == '\0' || kConversions.find(conversion) == std::string_view::npos)
      return invalid("`" + shown + "` in " + out.text_ + " is unknown; there are " +
                     kAllConversions);
    const bool counts = conversion == 'i' || conversion == 'a' || conversion == 't';
    if (at > from + 1 && (!counts || digits > kDigitsMax))
      return invalid("`" + shown + "` in " + out.text_ + ": " +
                     (counts ? "at most " + std::to_string(kDigitsMax) + " digits"
                             : std::string("only %i, %a and %t can have a number of digits")));
    end_literal();
    out.parts_.push_back({.conversion = conversion, .digits = digits});
  }
  end_literal();
  if (out.parts_.empty() || text.ends_with('/'))
    return invalid((text.empty() ? std::string("empty") : out.text_ + " names a directory") +
                   "; name the files in it, such as " + out.text_ + "%i.out");
  return out;
}

std::string OutputPattern::path(const OutputPod& pod) const {
  std::string out;
  for (const Part& part : parts_) {
    if (out.size() > kPathMax) break;  // too long to be opened
    switch (part.conversion) {
      case 'j':
        out += one_name(pod.job);
        break;
      case 'i':
        out += digits_of(pod.index, part.digits);
        break;
      case 'a':
        out += digits_of(pod.attempt, part.digits);
        break;
      case 't':
        out += padded(one_name(pod.task), part.digits);
        break;
      case 'n':
        out += one_name(pod.node);
        break;
      case 'p':
        out += one_name(pod.pod);
        break;
      default:
        out += part.text;
    }
  }
  return out;
}

std::string OutputPattern::directory(const std::string& job) const {
  std::string fixed;
  for (const Part& part : parts_) {
    if (part.conversion != 0 && part.conversion != 'j') break;
    fixed += part.conversion == 'j' ? one_name(job) : part.text;
  }
  const size_t slash = fixed.rfind('/');
  if (slash == std::string::npos) return "";
  return slash == 0 ? "/" : fixed.substr(0, slash);
}

bool OutputPattern::has(char conversion) const {
  return std::any_of(parts_.begin(), parts_.end(),
                     [&](const Part& part) { return part.conversion == conversion; });
}

Status OutputPattern::fits(bool indexed, bool several) const {
  if (!indexed && (has('i') || has('a') || has('t')))
    return invalid(text_ +
                   ": files of a NonIndexed job cannot be named by index or attempt; use %p");
  if (several && !has('p') && !has('i') && !has('t'))
    return invalid(text_ + " is the same file for all " + (indexed ? "indexes" : "pods") +
                   "; add " + (indexed ? "%i" : "%p"));
  return Nothing{};
}

bool looks_like_path(std::string_view word) {
  return word.find_first_of("%/.") != std::string_view::npos;
}

}  // namespace muster::core
