// muster apply: creates each object, or changes it to match its manifest.
//
// The last applied manifest is stored with the object in kubectl's own annotation, so apply works
// alternately with kubectl: a field that was applied before and is no longer in the manifest is
// removed, and fields that others have set stay.
#include "cli/client/discovery.hpp"
#include "cli/client/manifests.hpp"
#include "cli/client/objects.hpp"
#include "cli/output/exit_codes.hpp"
#include "cli/settings/files.hpp"
#include "cli/verbs/verbs.hpp"
#include "core/spec/well_known.hpp"

#include <iostream>

namespace muster::cli {
namespace {

// A merge patch that turns an object into `wanted` and removes what only `last` had.
Json patch_to(const Json& wanted, const Json& last) {
  Json patch = wanted;
  if (!wanted.is_object() || !last.is_object()) return patch;
  for (const auto& [name, value] : last.items()) {
    if (!wanted.contains(name))
      patch[name] = nullptr;
    else
      patch[name] = patch_to(wanted[name], value);
  }
  return patch;
}

// The part of an object that its owner writes. The server changes the rest, and the version.
Json owned(const Json& object) {
  return {at(object, {"spec"}),
          at(object, {"data"}),
          at(object, {"binaryData"}),
          at(object, {"immutable"}),
          at(object, {"metadata", "labels"}),
          at(object, {"metadata", "annotations"})};
}

}  // namespace

int execute(const ApplyOptions& options) {
  const auto client = connect(options.target);
  for (const std::string& file : options.files) {
    auto documents = read_manifests(file);
    if (!documents) return fail(documents.error());
    for (const Document& document : *documents) {
      const std::string ns = document.ns.empty() ? options.target.ns : document.ns;
      if (document.name.empty())
        return fail(
            kRejected,
            shown_path(file) +
                ": metadata.name: apply needs a name, generateName gives a new one each time");
      const std::string path = manifest_path(document.kind, ns, document.name);
      const std::string shown = std::string(manifest_kind(document.kind)) + "/" + document.name;
      auto there = object(*client, path);
      if (!there && there.error().code != Errc::not_found) return fail(there.error());
      Json wanted = read_json(document.json);
      const std::string applied = dumped(wanted);
      wanted["metadata"]["annotations"][core::kLastAppliedKey] = applied;
      if (!there) {
        auto job = create_object(*client, document.kind, ns, dumped(wanted), false);
        if (!job)
          return fail(job.error(), job.error().code == Errc::unavailable ? "" : shown_path(file));
        std::cout << shown << " created" << std::endl;
        continue;
      }
      const Json last =
          read_json(text_at(*there, {"metadata", "annotations", core::kLastAppliedKey.data()}));
      auto job = change_object(*client, path, patch_to(wanted, last));
      if (!job)
        return fail(job.error(), job.error().code == Errc::unavailable ? "" : shown_path(file));
      const bool same = owned(*job) == owned(*there);
      std::cout << shown << (same ? " unchanged" : " configured") << std::endl;
    }
  }
  return kDone;
}

}  // namespace muster::cli
