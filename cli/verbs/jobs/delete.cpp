// muster delete: deletes jobs in the background: the name is free at once (unless a finalizer holds
// the job), and the pods get SIGTERM and their grace period. Deletes pods and nodes as well.
#include "cli/verbs/verbs.hpp"
#include "client/connect/discovery.hpp"
#include "client/connect/objects.hpp"
#include "client/documents/document_writes.hpp"
#include "client/documents/placed.hpp"
#include "client/terminal/exit_codes.hpp"
#include "client/terminal/text.hpp"

#include <iostream>

namespace muster::cli {
namespace {

class Deleter {
 public:
  Deleter(const DeleteOptions& options, ApiClient& client) : options_(options), client_(client) {}

  int run() {
    const std::string& ns = options_.target.ns;
    if (!options_.files.empty()) return delete_files();
    if (options_.all || !options_.selector.empty()) return delete_selected();
    for (const std::string& name : options_.names)
      if (!remove(options_.kind, ns, name)) break;
    return code_;
  }

 private:
  // False: the coordinator did not answer, so the rest is not tried.
  bool remove(Kind kind, const std::string& ns, const std::string& name) {
    const Status removed =
        remove(object_path(kind, ns, name), std::string(kind_name(kind)) + "/" + name);
    if (removed) return true;
    code_ = fail(removed.error());
    return code_ != kUnreachable;
  }

  Status remove(const std::string& path, const std::string& shown) {
    auto response = client_.remove(
        path, R"({"kind":"DeleteOptions","apiVersion":"v1","propagationPolicy":"Background"})");
    if (!response) return response.error();
    if (response->ok())
      std::cout << shown << " deleted" << std::endl;
    else if (response->status != 404 || !options_.ignore_missing)
      return refusal(*response);
    return Nothing{};
  }

  int delete_selected() {
    std::string path = object_path(options_.kind, options_.target.ns);
    if (!options_.selector.empty()) path += "?labelSelector=" + url_encoded(options_.selector);
    auto list = object(client_, path);
    if (!list) return fail(list.error());
    const Json& items = at(*list, {"items"});
    if (items.empty()) std::cerr << "No " << kind_plural(options_.kind) << " found.\n";
    for (const Json& item : items)
      if (!remove(options_.kind, options_.target.ns, text_at(item, {"metadata", "name"}))) break;
    return code_;
  }

  int delete_files() {
    return each_document(options_.files, [this](const Document& document) -> Status {
      if (text_at(read_json(document.json), {"metadata", "name"}).empty())
        return placed(invalid("metadata.name: delete needs a name; for a job made by "
                              "generateName, its generated name"),
                      document);
      auto ns = namespace_of(document, options_.target.ns, options_.ns_given);
      if (!ns) return ns.error();
      return remove(manifest_path(document.kind, *ns, document.name),
                    std::string(manifest_kind(document.kind)) + "/" + document.name);
    });
  }

  const DeleteOptions& options_;
  ApiClient& client_;
  int code_ = kDone;
};

}  // namespace

int execute(const DeleteOptions& options) {
  const auto client = connect(options.target);
  return Deleter(options, *client).run();
}

}  // namespace muster::cli
