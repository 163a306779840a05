#include "core/spec/fields/mpi.hpp"

#include <algorithm>
#include <charconv>

namespace muster::core {
namespace {

constexpr size_t kIfaceMax = 15;  // the kernel's IFNAMSIZ without the terminator

Status read_option(std::string_view option, MpiOptions& options) {
  constexpr std::string_view kSlots = "slots=", kIface = "iface=";
  if (option.starts_with(kSlots)) {
    const std::string_view number = option.substr(kSlots.size());
    const auto [end, error] =
        std::from_chars(number.data(), number.data() + number.size(), options.slots);
    if (error != std::errc{} || end != number.data() + number.size() || options.slots == 0 ||
        options.slots > kMpiSlotsMax)
      return invalid("slots must be a number from 1 to " + std::to_string(kMpiSlotsMax));
    return Nothing{};
  }
  if (option.starts_with(kIface)) {
    options.iface = option.substr(kIface.size());
    if (!is_interface_name(options.iface))
      return invalid("iface must be the name of a network interface");
    return Nothing{};
  }
  if (option == "ssh-shim") {
    options.ssh_shim = true;
    return Nothing{};
  }
  if (option == "direct") {
    options.direct = true;
    return Nothing{};
  }
  return invalid("unknown option \"" + std::string(option) +
                 "\"; the options are slots=N, iface=NAME, ssh-shim and direct");
}

}  // namespace

bool is_interface_name(std::string_view name) {
  return !name.empty() && name.size() <= kIfaceMax && name != "." && name != ".." &&
         std::ranges::all_of(name, [](char c) {
           return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                  c == '.' || c == '_' || c == '-';
         });
}

Result<MpiOptions> parse_mpi(std::string_view text) {
  MpiOptions options;
  size_t comma = text.find(',');
  const std::string_view kind = text.substr(0, comma);
  if (kind == "openmpi")
    options.kind = MpiKind::openmpi;
  else if (kind == "mpich")
    options.kind = MpiKind::mpich;
  else if (kind != "auto")
    return invalid("must begin with \"openmpi\", \"mpich\" or \"auto\"");
  while (comma != std::string_view::npos) {
    text.remove_prefix(comma + 1);
    comma = text.find(',');
    if (Status read = read_option(text.substr(0, comma), options); !read) return read.error();
  }
  if (options.direct && options.kind != MpiKind::mpich) return invalid("direct requires \"mpich\"");
  if (options.direct && options.slots != 1) return invalid("direct starts one rank in each pod");
  return options;
}

std::optional<MpiOptions> mpi_of(const StringMap& annotations) {
  const auto found = annotations.find(std::string(kMpiKey));
  if (found == annotations.end()) return std::nullopt;
  auto options = parse_mpi(found->second);
  return options.ok() ? std::optional(std::move(*options)) : std::nullopt;
}

}  // namespace muster::core
