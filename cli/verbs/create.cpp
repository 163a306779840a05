// muster create: sends each manifest of each file to the API, in order. Stops at the first refusal;
// what was already created stays.
#include "cli/client/discovery.hpp"
#include "cli/client/manifests.hpp"
#include "cli/client/objects.hpp"
#include "cli/output/exit_codes.hpp"
#include "cli/settings/files.hpp"
#include "cli/verbs/verbs.hpp"

#include <iostream>

namespace muster::cli {
namespace {

void print_created(const Json& job, const CreateOptions& options) {
  const std::string name =
      std::string(manifest_kind(text_at(job, {"kind"}))) + "/" + text_at(job, {"metadata", "name"});
  switch (options.output) {
    case Output::json:
      std::cout << dumped(job, 4) << "\n";
      break;
    case Output::yaml:
      std::cout << to_yaml(job);
      break;
    case Output::name:
      std::cout << name << "\n";
      break;
    case Output::table:
    case Output::wide:
    case Output::tsv:
      std::cout << name << " created" << (options.dry_run ? " (dry run)" : "") << "\n";
      break;
  }
  std::cout.flush();
}

}  // namespace

int execute(const CreateOptions& options) {
  const auto client = connect(options.target);
  for (const std::string& file : options.files) {
    auto documents = read_manifests(file);
    if (!documents) return fail(documents.error());
    for (const Document& document : *documents) {
      if (options.ns_given && !document.ns.empty() && document.ns != options.target.ns) {
        return fail(kRejected, shown_path(file) + ": metadata.namespace is " + document.ns +
                                   ", but -n is " + options.target.ns);
      }
      const std::string ns = document.ns.empty() ? options.target.ns : document.ns;
      auto job = create_object(*client, document.kind, ns, document.json, options.dry_run);
      if (!job)
        return fail(job.error(), job.error().code == Errc::unavailable ? "" : shown_path(file));
      print_created(*job, options);
    }
  }
  return kDone;
}

}  // namespace muster::cli
