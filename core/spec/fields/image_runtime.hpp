// ImageRuntime: the site's command for containers that have an image (`--image-runtime`), such as
// "apptainer exec {image}": words, run without a shell, followed by the container's command.
#pragma once

#include "base/result.hpp"
#include "core/spec/fields/job_spec.hpp"
#include "core/spec/values/violations.hpp"

#include <string>
#include <string_view>
#include <vector>

namespace muster::core {

class ImageRuntime {
 public:
  ImageRuntime() = default;  // none: images are ignored
  // `invalid`: no word contains {image}, or no other word comes before it.
  static Result<ImageRuntime> parse(std::string_view text);

  bool any() const { return !words_.empty(); }
  // Puts these words before the command of a container that has an image.
  void wrap(Container& container) const;
  // Finds containers that could never start: no command, and nothing else says what to run.
  void validate(const PodTemplate& pod, Violations& found) const;

 private:
  std::vector<std::string> words_;
};

}  // namespace muster::core
