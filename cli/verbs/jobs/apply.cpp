// muster apply: creates each object, or changes it to match its manifest.
//
// The last applied manifest is stored with the object in kubectl's own annotation, so apply and
// kubectl can be used alternately: a field that was applied before and is no longer in the manifest
// is removed, and fields set by others are kept.
#include "base/text/json_text.hpp"
#include "cli/verbs/verb.hpp"
#include "cli/verbs/words.hpp"
#include "client/connect/discovery.hpp"
#include "client/connect/objects.hpp"
#include "client/documents/document_writes.hpp"
#include "client/documents/placed.hpp"
#include "core/spec/values/well_known.hpp"

#include <iostream>

namespace muster::cli {

struct ApplyOptions {
  Target target;
  std::vector<std::string> files;
  bool dry_run = false;
};

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
          at(object, {"value"}),
          at(object, {"globalDefault"}),
          at(object, {"description"}),
          at(object, {"preemptionPolicy"}),
          at(object, {"metadata", "labels"}),
          at(object, {"metadata", "annotations"})};
}

// A merge patch contains each field once, so the API cannot detect a repeated one.
Status check_repeated(const Document& document) {
  auto parsed = parse_json(document.json, kNoLimits);
  if (!parsed || parsed->duplicates.empty()) return Nothing{};
  std::string fields;
  for (const std::string& path : parsed->duplicates)
    fields += (fields.empty() ? "duplicate field \"" : ", duplicate field \"") + path + "\"";
  return placed(invalid(fields), document);
}

Status apply(ApiClient& client, const Document& document, const ApplyOptions& options) {
  if (Status once = check_repeated(document); !once) return once;
  Json wanted = read_json(document.json);
  if (text_at(wanted, {"metadata", "name"}).empty())
    return placed(
        invalid("metadata.name: apply needs a name; generateName gives a new one each time"),
        document);
  const std::string ns = document.ns.empty() ? options.target.ns : document.ns;
  const std::string shown = std::string(manifest_kind(document.kind)) + "/" + document.name;
  const char* const end = options.dry_run ? " (dry run)" : "";
  auto there = object(client, manifest_path(document.kind, ns, document.name));
  if (!there && there.error().code != Errc::not_found) return there.error();
  // Output of `get -o yaml` may contain the manifest that was applied before.
  if (at(wanted, {"metadata", "annotations"}).is_object())
    wanted["metadata"]["annotations"].erase(std::string(core::kLastAppliedKey));
  const std::string applied = dumped(wanted);
  wanted["metadata"]["annotations"][core::kLastAppliedKey] = applied;
  if (!there) {
    auto created = create_document(client, document, ns, options.dry_run, dumped(wanted));
    if (!created) return created.error();
    std::cout << shown << " created" << end << std::endl;
    return Nothing{};
  }
  const Json last =
      read_json(text_at(*there, {"metadata", "annotations", core::kLastAppliedKey.data()}));
  auto changed = patch_document(client, document, ns, patch_to(wanted, last), options.dry_run);
  if (!changed) return changed.error();
  const bool same = owned(*changed) == owned(*there);
  std::cout << shown << (same ? " unchanged" : " configured") << end << std::endl;
  return Nothing{};
}

}  // namespace

int execute(const ApplyOptions& options) {
  const auto client = connect(options.target);
  return each_document(options.files,
                       [&](const Document& document) { return apply(*client, document, options); });
}

Verb apply_verb() {
  auto o = std::make_shared<ApplyOptions>();
  return {
      .title = {"Jobs", "apply", "Create or update objects to match their manifests"},
      .rows = {{"-f,--file,--filename", "F", kFilesHelp, &o->files, kAnything,
                kRequired | kSeveral},
               {"--dry-run", "", kDryRunHelp, &o->dry_run}},
      .asks = {&o->target},
      .footer =
          "Examples:\n  muster apply -f sweep.yaml\n  muster get job sweep -o yaml | muster apply "
          "-f -",
      .finish = as_given(o)};
}

}  // namespace muster::cli
