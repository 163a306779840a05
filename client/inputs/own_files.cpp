#include "client/inputs/own_files.hpp"

#include "client/connect/objects.hpp"
#include "client/terminal/text.hpp"
#include "core/pod_name.hpp"

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <system_error>

namespace muster::cli {
namespace {

constexpr std::streamoff kTailMax = 4 << 20;  // bytes in which the last lines are looked for

core::StringMap annotations_of(const Json& job) {
  core::StringMap out;
  for (const auto& [key, value] : at(job, {"metadata", "annotations"}).items())
    if (value.is_string()) out[key] = value.get<std::string>();
  return out;
}

}  // namespace

OwnFiles::OwnFiles(const Json& job)
    : settings_(core::read_process_settings(annotations_of(job))),
      name_(text_at(job, {"metadata", "name"})),
      uid_(text_at(job, {"metadata", "uid"})),
      indexed_(is_indexed(job)),
      inputs_(job) {}

bool OwnFiles::on_node() const {
  for (const std::string* text : {&settings_.out, &settings_.err})
    if (auto pattern = core::OutputPattern::parse(*text); pattern.ok() && pattern->has('n'))
      return true;
  return false;
}

std::vector<std::string> OwnFiles::paths(int64_t index, int64_t attempt, const std::string& node,
                                         std::optional<bool> err) const {
  const PodKey key{static_cast<uint32_t>(index), static_cast<uint32_t>(attempt)};
  const core::ProcessSettings of_pod =
      core::for_pod(settings_, {.job = name_,
                                .pod = core::pod_name(name_, uid_, indexed_, key),
                                .node = node,
                                .index = index,
                                .attempt = attempt,
                                .task = inputs_.of(index).value_or("")});
  std::vector<std::string> out;
  const bool apart = !of_pod.err.empty();
  for (const std::string* file : {&of_pod.out, &of_pod.err}) {
    const bool wanted = !err || !apart || *err == (file == &of_pod.err);
    if (wanted && !file->empty() && *file != "/dev/null" &&
        std::ranges::find(out, *file) == out.end())
      out.push_back(*file);
  }
  return out;
}

Status read_own_file(const std::string& path, std::optional<int64_t> lines,
                     const std::function<bool(std::string_view)>& write) {
  std::error_code error;
  std::ifstream in;
  if (std::filesystem::is_regular_file(path, error)) in.open(path, std::ios::binary);
  if (!in.is_open())
    return invalid("the output is in " + path + " on its node, which cannot be read here: " +
                   (error ? error.message() : "not a regular file"));
  if (lines) {
    in.seekg(0, std::ios::end);
    const std::streamoff size = in.tellg();
    in.seekg(size > kTailMax ? size - kTailMax : 0);
    const std::string text{std::istreambuf_iterator<char>(in), {}};
    for (const std::string& line : last_lines(text, static_cast<size_t>(*lines)))
      if (!write(line + "\n")) break;
    return Nothing{};
  }
  std::array<char, 64 << 10> bytes;
  while (in.read(bytes.data(), bytes.size()), in.gcount() > 0)
    if (!write({bytes.data(), static_cast<size_t>(in.gcount())})) break;
  return Nothing{};
}

}  // namespace muster::cli
