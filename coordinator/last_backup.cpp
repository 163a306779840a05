#include "coordinator/last_backup.hpp"

#include "base/files/private_files.hpp"

#include <charconv>

namespace muster::coordinator {
namespace {

constexpr char kName[] = "last-backup";

}  // namespace

Status note_backup(const std::string& data_dir, Millis at_ms) {
  auto dir = open_private_dir(data_dir, "data-dir");
  if (!dir) return dir.error();
  return replace_private_file(dir->get(), kName, std::to_string(at_ms) + "\n");
}

std::optional<Millis> last_backup(const std::string& data_dir) {
  auto dir = open_private_dir(data_dir, "data-dir");
  if (!dir) return std::nullopt;
  const auto text = read_private_file(dir->get(), kName);
  Millis at_ms = 0;
  if (!text || std::from_chars(text->data(), text->data() + text->size(), at_ms).ec != std::errc())
    return std::nullopt;
  return at_ms;
}

}  // namespace muster::coordinator
