#include "base/process/gpus.hpp"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string_view>
#include <utility>

namespace muster {

namespace {

namespace fs = std::filesystem;

constexpr std::string_view kAmdVendor = "0x1002";  // PCI

// The entries of a directory whose names pass; none if it cannot be read.
template <class Passes>
uint32_t entries(const std::string& dir, const Passes& passes) {
  uint32_t count = 0;
  std::error_code error;
  for (fs::directory_iterator at(dir, error), end; !error && at != end; at.increment(error))
    count += passes(at->path().filename().string());
  return count;
}

bool is_numbered(const std::string& name, std::string_view prefix) {
  return name.starts_with(prefix) && name.size() > prefix.size() &&
         name.find_first_not_of("0123456789", prefix.size()) == name.npos;
}

uint32_t nvidia_gpus(const std::string& root) {
  const uint32_t listed =
      entries(root + "/proc/driver/nvidia/gpus", [](const std::string&) { return true; });
  if (listed > 0) return listed;
  return entries(root + "/dev",
                 [](const std::string& name) { return is_numbered(name, "nvidia"); });
}

uint32_t amd_gpus(const std::string& root) {
  std::error_code error;
  if (!fs::exists(root + "/dev/kfd", error)) return 0;
  return entries(root + "/dev/dri", [&root](const std::string& name) {
    std::ifstream vendor(root + "/sys/class/drm/" + name + "/device/vendor");
    std::string id;
    return is_numbered(name, "renderD") && vendor >> id && id == kAmdVendor;
  });
}

// "0,2" as CUDA reads it: up to the first number that is none of a device. Nothing: it names
// devices otherwise.
std::optional<std::vector<uint32_t>> numbers_in(std::string_view text, uint32_t there) {
  std::vector<uint32_t> numbers;
  while (!text.empty()) {
    const std::string_view word = text.substr(0, text.find(','));
    text.remove_prefix(std::min(word.size() + 1, text.size()));
    if (word == "-1" || word == "NoDevFiles") break;
    uint32_t number = 0;
    const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), number);
    if (error != std::errc{} || end != word.data() + word.size()) return std::nullopt;
    if (number >= there) break;
    if (std::find(numbers.begin(), numbers.end(), number) == numbers.end())
      numbers.push_back(number);
  }
  std::sort(numbers.begin(), numbers.end());
  return numbers;
}

}  // namespace

Gpus find_gpus(const std::string& root, const std::function<const char*(const char*)>& variable) {
  Gpus found;
  // There, GPUs may be others', unless the variable says which are ours.
  const bool in_batch_job = variable("SLURM_JOB_ID") != nullptr ||
                            variable("FLUX_JOB_ID") != nullptr || variable("PBS_JOBID") != nullptr;
  const auto look = [&](const char* resource, const char* limit, uint32_t there) {
    if (there == 0) return;
    std::vector<uint32_t> numbers;
    if (const char* const text = variable(limit)) {
      auto some = numbers_in(text, there);
      if (!some) {
        found.troubles.push_back(std::string(limit) + " is `" + text +
                                 "`, which is not a list of numbers, so no GPUs are declared; "
                                 "start the agent with their numbers there");
        return;
      }
      numbers = std::move(*some);
    } else if (!in_batch_job) {
      for (uint32_t i = 0; i < there; ++i) numbers.push_back(i);
    }
    if (!numbers.empty()) found.numbers[resource] = std::move(numbers);
  };
  look("nvidia.com/gpu", "CUDA_VISIBLE_DEVICES", nvidia_gpus(root));
  look("amd.com/gpu", "ROCR_VISIBLE_DEVICES", amd_gpus(root));
  return found;
}

}  // namespace muster
