// muster delete: deletes jobs in the background: the name is free at once (unless a finalizer holds
// the job), and the pods get SIGTERM and their grace period. Deletes pods and nodes as well.
#include "cli/client/discovery.hpp"
#include "cli/client/manifests.hpp"
#include "cli/client/objects.hpp"
#include "cli/output/exit_codes.hpp"
#include "cli/output/text.hpp"
#include "cli/settings/files.hpp"
#include "cli/verbs/verbs.hpp"

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
    return remove(object_path(kind, ns, name), std::string(kind_name(kind)) + "/" + name);
  }

  bool remove(const std::string& path, const std::string& shown) {
    auto response = client_.remove(
        path, R"({"kind":"DeleteOptions","apiVersion":"v1","propagationPolicy":"Background"})");
    if (!response) {
      code_ = fail(response.error());
      return false;
    }
    if (response->ok())
      std::cout << shown << " deleted" << std::endl;
    else if (response->status != 404 || !options_.ignore_missing)
      code_ = fail(refusal(*response));
    return true;
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

  // Reads all files first: a wrong one deletes nothing.
  int delete_files() {
    std::vector<Document> wanted;
    for (const std::string& file : options_.files) {
      auto documents = read_manifests(file);
      if (!documents) return fail(documents.error());
      for (Document& document : *documents) {
        if (text_at(read_json(document.json), {"metadata", "name"}).empty())
          return fail(kRejected, shown_path(file) +
                                     ": metadata.name: delete needs a name; jobs made by "
                                     "generateName are deleted by theirs");
        if (options_.ns_given && !document.ns.empty() && document.ns != options_.target.ns)
          return fail(kRejected, shown_path(file) + ": metadata.namespace is " + document.ns +
                                     ", but -n is " + options_.target.ns);
        wanted.push_back(std::move(document));
      }
    }
    for (const Document& document : wanted) {
      const std::string& ns = document.ns.empty() ? options_.target.ns : document.ns;
      if (!remove(manifest_path(document.kind, ns, document.name),
                  std::string(manifest_kind(document.kind)) + "/" + document.name))
        break;
    }
    return code_;
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
