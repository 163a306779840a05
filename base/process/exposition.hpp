// Exposition: what a process says of itself, as text for Prometheus (format 0.0.4). The
// coordinator's own metrics come from prometheus-cpp instead.
//
// Labels are words, which need no escapes.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <string>
#include <string_view>
#include <utility>

namespace muster {

// Durations, in seconds, by buckets of which each is twice as wide as the one before: 0.1 ms, 0.2
// ms, … 3.3 s, and above.
class DurationBuckets {
 public:
  static constexpr size_t kBounds = 16;
  static double bound(size_t i) { return 0.0001 * static_cast<double>(uint64_t{1} << i); }
  void add(double seconds) {
    size_t i = 0;
    while (i < kBounds && seconds > bound(i)) ++i;
    ++counts_[i];
    sum_ += seconds;
  }
  uint64_t count(size_t i) const { return counts_[i]; }  // i == kBounds: above all bounds
  double sum() const { return sum_; }

 private:
  std::array<uint64_t, kBounds + 1> counts_{};
  double sum_ = 0;
};

class Exposition {
 public:
  Exposition& metric(std::string_view name, std::string_view type, std::string_view help) {
    name_ = name;
    text_ += "# HELP " + name_ + " " + std::string(help) + "\n# TYPE " + name_ + " " +
             std::string(type) + "\n";
    return *this;
  }
  Exposition& value(double number, std::string_view labels = "") {
    line(name_, number, labels);
    return *this;
  }
  void gauge(std::string_view name, std::string_view help, double number) {
    metric(name, "gauge", help).value(number);
  }
  void counter(std::string_view name, std::string_view help, double number) {
    metric(name, "counter", help).value(number);
  }
  void histogram(std::string_view name, std::string_view help, const DurationBuckets& all) {
    metric(name, "histogram", help);
    uint64_t count = 0;
    for (size_t i = 0; i <= DurationBuckets::kBounds; ++i) {
      count += all.count(i);
      const std::string bound =
          i == DurationBuckets::kBounds ? "+Inf" : digits(DurationBuckets::bound(i));
      line(name_ + "_bucket", static_cast<double>(count), "le=\"" + bound + "\"");
    }
    line(name_ + "_sum", all.sum(), "");
    line(name_ + "_count", static_cast<double>(count), "");
  }
  std::string text() && { return std::move(text_); }

 private:
  static std::string digits(double number) {
    char digits[64];
    std::snprintf(digits, sizeof digits, "%.15g", number);
    return digits;
  }
  void line(const std::string& name, double number, std::string_view labels) {
    text_ += name + (labels.empty() ? "" : "{" + std::string(labels) + "}") + " " + digits(number) +
             "\n";
  }

  std::string name_, text_;
};

}  // namespace muster
