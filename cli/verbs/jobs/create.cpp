// muster create: sends each manifest of each file to the API, in order. A refused manifest does not
// stop the others.
#include "cli/verbs/verb.hpp"
#include "cli/verbs/words.hpp"
#include "client/connect/discovery.hpp"
#include "client/connect/objects.hpp"
#include "client/documents/document_writes.hpp"

#include <iostream>

namespace muster::cli {

struct CreateOptions {
  Target target;
  bool ns_given = false;  // false: use each manifest's own
  std::vector<std::string> files;
  bool dry_run = false;
  Output output = Output::table;  // table: "job.batch/J created"
};

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

Verb create_verb() {
  auto o = std::make_shared<CreateOptions>();
  return {.title = {"Jobs", "create", "Create jobs, ConfigMaps and namespaces from manifests"},
          .rows = {{"-f,--file,--filename", "F", kFilesHelp, &o->files, kAnything,
                    kRequired | kSeveral},
                   {"-o,--output", "FORM", "Output format:", &o->output,
                    one_of({"name", "json", "yaml"})},
                   {"--dry-run", "", kDryRunHelp, &o->dry_run}},
          .asks = {&o->target},
          .footer = "Examples:\n  muster create -f job.yaml\n  cat *.yaml | muster create -f -",
          .finish = [o](const Given& given) -> Judged {
            o->ns_given = given.flags.contains("--namespace");
            return *o;
          }};
}

}  // namespace muster::cli
