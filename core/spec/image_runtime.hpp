// ImageRuntime: the site's command for containers that have an image (`--image-runtime`), such as
// "apptainer exec {image}": words, without a shell, to which the container's command is appended.
#pragma once

#include "base/result.hpp"
#include "core/spec/job_spec.hpp"
#include "core/spec/violations.hpp"

#include <string>
#include <string_view>
#include <vector>

namespace muster::core {

class ImageRuntime {
 public:
  ImageRuntime() = default;  // none: images are ignored
  // `invalid`: no word has {image}, or there is nothing before it.
  static Result<ImageRuntime> parse(std::string_view text);

  bool any() const { return !words_.empty(); }
  // Puts its words before the container's command, if that has an image.
  void wrap(Container& container) const;
  // Containers that could never start: without a command, and nothing else says what to run.
  void validate(const PodTemplate& pod, Violations& found) const;

 private:
  std::vector<std::string> words_;
};

}  // namespace muster::core
