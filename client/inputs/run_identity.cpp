#include "client/inputs/run_identity.hpp"

#include "client/settings/files.hpp"

#include <filesystem>

namespace muster::cli {
namespace {

// The first path at which two values differ: "spec.parallelism".
std::string difference(const Json& a, const Json& b, const std::string& path) {
  if (a.is_object() && b.is_object()) {
    for (const Json* side : {&a, &b}) {
      for (const auto& [key, value] : side->items()) {
        const bool both = a.contains(key) && b.contains(key);
        std::string below = path.empty() ? key : path + "." + key;
        if (!both) return below;
        if (a[key] != b[key]) return difference(a[key], b[key], below);
      }
    }
  }
  return path.empty() ? "the document" : path;
}

}  // namespace

Result<RunIdentity> kept_run(const std::string& dir) {
  const std::string path = dir + "/run.json";
  std::error_code ignored;
  if (!std::filesystem::exists(path, ignored))
    return Error{Errc::not_found, dir + " is not the --data-dir of a muster run", {}};
  auto text = read_file(path);
  if (!text) return text.error();
  const Json kept = read_json(*text);
  const Json& manifest = at(kept, {"manifest"});
  const Json& name_given = at(kept, {"nameGiven"});
  if (!manifest.is_object() || !name_given.is_boolean()) {
    return Error{
        Errc::invalid, path + " is damaged: which job this directory belongs to is unknown", {}};
  }
  return RunIdentity{.manifest = manifest,
                     .name_given = name_given.get<bool>(),
                     .slots = static_cast<int>(number_at(kept, {"slots"}))};
}

Result<RunIdentity> claim(const std::string& dir, RunIdentity wanted) {
  auto kept = kept_run(dir);
  if (kept) {
    const std::string name = text_at(kept->manifest, {"metadata", "name"});
    if (!wanted.name_given && !kept->name_given) wanted.manifest["metadata"]["name"] = name;
    if (wanted.manifest != kept->manifest) {
      return Error{Errc::conflict,
                   dir + " holds " + (name.empty() ? "another job" : "job/" + name) +
                       " already and this one differs (" +
                       difference(kept->manifest, wanted.manifest, "") +
                       "): use another --data-dir",
                   {}};
    }
    return wanted;
  }
  if (kept.error().code != Errc::not_found) return kept.error();
  const Json content = {
      {"manifest", wanted.manifest}, {"nameGiven", wanted.name_given}, {"slots", wanted.slots}};
  if (Status s = write_file(dir + "/run.json", dumped(content, 2) + "\n"); !s) return s.error();
  return wanted;
}

}  // namespace muster::cli
