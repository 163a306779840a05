// muster create: sends each manifest of each file to the API, in order. A refused manifest does not
// stop the others.
#include "cli/verbs/verbs.hpp"
#include "client/connect/discovery.hpp"
#include "client/connect/objects.hpp"
#include "client/documents/document_writes.hpp"

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
  return each_document(options.files, [&](const Document& document) -> Status {
    auto ns = namespace_of(document, options.target.ns, options.ns_given);
    if (!ns) return ns.error();
    auto object = create_document(*client, document, *ns, options.dry_run);
    if (!object) return object.error();
    print_created(*object, options);
    return Nothing{};
  });
}

}  // namespace muster::cli
