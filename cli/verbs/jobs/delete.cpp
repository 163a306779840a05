// muster delete: deletes jobs in the background: the name is free at once (unless a finalizer holds
// the job), and the pods get SIGTERM and their grace period. Deletes pods and nodes as well.
#include "cli/verbs/jobs/delete.hpp"

#include "cli/verbs/near_miss.hpp"
#include "cli/verbs/words.hpp"
#include "client/connect/discovery.hpp"
#include "client/connect/objects.hpp"
#include "client/documents/document_writes.hpp"
#include "client/documents/placed.hpp"
#include "client/settings/submitter.hpp"
#include "client/terminal/exit_codes.hpp"
#include "client/terminal/text.hpp"
#include "core/spec/fields/owner.hpp"

#include <iostream>

namespace muster::cli {
namespace {

class Deleter {
 public:
  Deleter(const DeleteOptions& options, ApiClient& client) : options_(options), client_(client) {}

  int run() {
    const std::string& ns = options_.target.ns;
    if (!options_.files.empty()) return delete_files();
    if (options_.all || !options_.selector.empty() || options_.filter.any())
      return delete_selected();
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
    code_ = fail(kind == Kind::job || kind == Kind::pod
                     ? with_near_miss(client_, ns, kind, name, removed.error(), Parts::none)
                     : removed.error());
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
    bool any = false;
    for (const Json& item : at(*list, {"items"})) {
      if (options_.filter.any() &&
          (!keeps(options_.filter, item, stage_of(item)) || is_of_others(item)))
        continue;
      any = true;
      if (!remove(options_.kind, options_.target.ns, text_at(item, {"metadata", "name"}))) break;
    }
    if (!any) std::cerr << "No " << kind_plural(options_.kind) << " found.\n";
    return code_;
  }

  // Without --user, a filter selects from one's own jobs, where jobs have owners.
  bool is_of_others(const Json& job) const {
    const std::string key(core::kOwnerKey);
    const std::string owner = text_at(job, {"metadata", "annotations", key.c_str()});
    return options_.filter.user.empty() && !owner.empty() && owner != user_name();
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

// "job NAME...", "pod/NAME...": one kind, and names. Checks that the kind can be deleted.
std::optional<Usage> read_deleted(const std::vector<std::string>& what, DeleteOptions& o) {
  const std::string& first = what.front();
  const size_t slash = first.find('/');
  const auto kind = parse_kind(first.substr(0, slash));
  if (!kind && slash == std::string::npos)
    return Usage{"`" + first + "`: a job, pod or node? muster delete job " + first};
  if (!kind) return unknown_kind(first.substr(0, slash));
  if (*kind == Kind::event)
    return Usage{"`" + first.substr(0, slash) + "`: events cannot be deleted"};
  o.kind = *kind;
  for (size_t i = slash == std::string::npos ? 1 : 0; i < what.size(); ++i) {
    const size_t at = what[i].find('/');
    const bool named = at != std::string::npos;
    if ((!named && slash != std::string::npos) ||
        (named && parse_kind(what[i].substr(0, at)) != kind))
      return Usage{"`" + what[i] + "`: must be " + kind_name(*kind) + "/NAME like the first"};
    o.names.push_back(named ? what[i].substr(at + 1) : what[i]);
    if (o.names.back().empty()) return Usage{"`" + what[i] + "`: has no name"};
  }
  return std::nullopt;
}

std::optional<Usage> read_deletion(const std::vector<std::string>& what, DeleteOptions& o) {
  const bool filtered = o.filter.any();
  const bool selected = o.all || !o.selector.empty() || filtered;
  if (!o.files.empty()) {
    if (!what.empty() || selected)
      return Usage{"-f says what to delete: omit names, -l, --all, --done and --failed"};
    return std::nullopt;
  }
  if (what.empty() && !filtered) return Usage{"what? muster delete job NAME, or -f FILE"};
  if (what.empty()) o.kind = Kind::job;  // the filters are for jobs
  if (auto wrong = what.empty() ? std::nullopt : read_deleted(what, o)) return wrong;
  if (filtered && o.kind != Kind::job)
    return Usage{"--done, --failed and --older-than are for jobs: muster delete jobs --done"};
  if (filtered && !o.filter.done && !o.filter.failed)
    return Usage{"--older-than and --user are for jobs that have finished: add --done or --failed"};
  if (filtered && (!o.names.empty() || o.all))
    return Usage{"--done and --failed select from all jobs: omit names and --all"};
  if (selected && (!o.names.empty() || (o.all && !o.selector.empty())))
    return Usage{"names, -l and --all are mutually exclusive"};
  if (selected && !is_namespaced(o.kind))
    return Usage{std::string(kind_plural(o.kind)) + " are deleted by name: muster delete " +
                 kind_name(o.kind) + " NAME"};
  if (!selected && o.names.empty())
    return Usage{"which " + std::string(kind_plural(o.kind)) + "? give names, -l or --all" +
                 (o.kind == Kind::job ? ", --done or --failed" : "")};
  return std::nullopt;
}

}  // namespace

int execute(const DeleteOptions& options) {
  const auto client = connect(options.target);
  return Deleter(options, *client).run();
}

Verb delete_verb() {
  struct Words {
    DeleteOptions o;
    std::vector<std::string> what;
    JobFilterWords filter;
  };
  auto w = std::make_shared<Words>();
  DeleteOptions& o = w->o;
  return {
      .title = {"Jobs", "delete", "Delete jobs and terminate their pods"},
      .rows = {{"what", "job NAME... | job/NAME...",
                "Jobs to delete, as job NAME or job/NAME; other kinds likewise", &w->what},
               {"-f,--file,--filename", "F",
                "Delete the objects of manifests: a file or directory, or - for stdin; repeatable",
                &o.files},
               {"-l,--selector", "SELECTOR", "Delete those with these labels, such as a=b,c!=d",
                &o.selector},
               {"--all", "", "Delete all objects of this kind in the namespace", &o.all},
               {"--done", "", "Delete jobs that have finished, complete or failed",
                &w->filter.filter.done},
               {"--failed", "", "Delete jobs that have failed", &w->filter.filter.failed},
               {"--user", "USER", "With --done or --failed, jobs of this user (default: your own)",
                &w->filter.filter.user},
               {"--older-than", "T", "Of these, only those that finished longer ago, such as 7d",
                &w->filter.older_than},
               {"--ignore-not-found", "", "Do not fail if an object does not exist",
                &o.ignore_missing}},
      .asks = {&o.target},
      .footer =
          "Examples:\n  muster delete job sweep\n  muster delete job/sweep job/train\n"
          "  muster delete -f sweep.yaml\n  muster delete jobs -l app=train\n"
          "  muster delete jobs --done --older-than 7d\n"
          "To end a job but keep its record, or to end single indexes, use muster cancel.",
      .refuses = {{"--index", "--task"},
                  "a job is deleted as a whole; to end some of its indexes: muster cancel job/NAME "
                  "--index 3,7-9"},
      .finish = [w](const Given& given) -> Judged {
        w->o.ns_given = given.flags.contains("--namespace");
        if (auto wrong = read_filter(w->filter, wall_now())) return *wrong;
        w->o.filter = w->filter.filter;
        return judged(read_deletion(w->what, w->o), w->o);
      }};
}

}  // namespace muster::cli
