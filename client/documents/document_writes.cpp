#include "client/documents/document_writes.hpp"

#include "client/connect/objects.hpp"
#include "client/documents/manifests.hpp"
#include "client/documents/placed.hpp"
#include "client/terminal/exit_codes.hpp"

#include <iostream>
#include <utility>

namespace muster::cli {
namespace {

constexpr char kStrictly[] = "?fieldManager=muster&fieldValidation=Strict";
constexpr char kTolerant[] = "?fieldManager=muster&fieldValidation=Ignore";
constexpr char kDry[] = "&dryRun=All";

// `ask` sends the request with this query.
Result<Json> send(const Document& document, bool dry_run,
                  const std::function<Result<Response>(const std::string& query)>& ask) {
  auto response = ask(std::string(kStrictly) + (dry_run ? kDry : ""));
  if (!response) return response.error();
  if (response->ok()) {
    for (const std::string& warning : response->warnings)
      std::cerr << "muster: warning: " << placed_warning(warning, document) << std::endl;
    return std::move(response->json);
  }
  Error error = refusal(*response);
  // The API refuses unknown and repeated fields before it checks any rule. Also ask which rules the
  // other fields break, so that the user sees all errors at once.
  if (response->status == 400 && error.message.starts_with("strict decoding error: ")) {
    auto rest = ask(std::string(kTolerant) + kDry);
    if (rest && rest->status == 422)
      for (Violation& one : refusal(*rest).violations) error.violations.push_back(std::move(one));
  }
  return placed(std::move(error), document);
}

}  // namespace

Result<Json> create_document(ApiClient& client, const Document& document, const std::string& ns,
                             bool dry_run, const std::string& manifest) {
  const std::string& body = manifest.empty() ? document.json : manifest;
  const std::string path = manifest_path(document.kind, ns);
  return send(document, dry_run,
              [&](const std::string& query) { return client.post(path + query, body); });
}

Result<Json> put_document(ApiClient& client, const Document& document, const std::string& ns) {
  const std::string path = manifest_path(document.kind, ns, document.name);
  return send(document, false, [&](const std::string& query) {
    return client.replace(path + query, document.json);
  });
}

Result<Json> patch_document(ApiClient& client, const Document& document, const std::string& ns,
                            const Json& patch, bool dry_run) {
  const std::string path = manifest_path(document.kind, ns, document.name);
  return send(document, dry_run,
              [&](const std::string& query) { return client.patch(path + query, dumped(patch)); });
}

int each_document(const std::vector<std::string>& files,
                  const std::function<Status(const Document&)>& one) {
  const Manifests manifests = read_manifests(files);
  int code = manifests.error ? fail(*manifests.error) : static_cast<int>(kDone);
  for (const Document& document : manifests.documents) {
    const Status done = one(document);
    if (done) continue;
    const int failed = fail(done.error());
    if (code == kDone) code = failed;
    if (failed == kUnreachable) break;
  }
  return code;
}

Result<std::string> namespace_of(const Document& document, const std::string& ns, bool given) {
  if (document.ns.empty() || !given || document.ns == ns)
    return document.ns.empty() ? ns : document.ns;
  return placed(invalid("metadata.namespace: is " + document.ns + ", but -n is " + ns), document);
}

}  // namespace muster::cli
