#include "core/spec/fields/image_runtime.hpp"

#include <algorithm>
#include <utility>

namespace muster::core {
namespace {

constexpr std::string_view kImage = "{image}";

// Escapes $: only the container's command is subject to expansion, not the image.
std::string unexpanded(const std::string& text) {
  std::string out;
  for (const char c : text) out.append(c == '$' ? 2 : 1, c);
  return out;
}

}  // namespace

Result<ImageRuntime> ImageRuntime::parse(std::string_view text) {
  ImageRuntime runtime;
  bool has_image = false;
  for (size_t from = 0; from < text.size();) {
    const size_t begin = text.find_first_not_of(" \t", from);
    if (begin == std::string_view::npos) break;
    from = std::min(text.find_first_of(" \t", begin), text.size());
    const std::string_view word = text.substr(begin, from - begin);
    has_image |= word.find(kImage) != std::string_view::npos;
    if (has_image && runtime.words_.empty()) break;  // the image would be the program
    runtime.words_.emplace_back(word);
  }
  if (!has_image || runtime.words_.empty())
    return invalid("`" + std::string(text) +
                   "`: must be a command with {image}, such as `apptainer exec {image}`");
  return runtime;
}

void ImageRuntime::wrap(Container& container) const {
  if (words_.empty() || container.image.empty()) return;
  std::vector<std::string> command;
  for (std::string word : words_) {
    for (size_t at = word.find(kImage); at != std::string::npos;
         at = word.find(kImage, at + container.image.size()))
      word.replace(at, kImage.size(), container.image);
    command.push_back(unexpanded(word));
  }
  for (std::string& word : container.command) command.push_back(std::move(word));
  container.command = std::move(command);
}

void ImageRuntime::validate(const PodTemplate& pod, Violations& found) const {
  auto check = [&](const char* list, const std::vector<Container>& containers) {
    for (size_t i = 0; i < containers.size(); ++i) {
      const Container& one = containers[i];
      if (!one.command.empty() || !one.args.empty() || (any() && !one.image.empty())) continue;
      found.required(
          item(std::string("spec.template.spec.") + list, i) + ".command",
          one.image.empty()
              ? "there is nothing to run"
              : "this cluster does not run images: set a command, or start the coordinator "
                "with --image-runtime");
    }
  };
  check("containers", pod.containers);
  check("initContainers", pod.init_containers);
}

}  // namespace muster::core
