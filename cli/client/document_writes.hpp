// Documents sent to the API. What it refuses and warns of is printed with its place in the file.
#pragma once

#include "base/result.hpp"
#include "cli/client/document.hpp"
#include "cli/client/http.hpp"
#include "cli/output/json.hpp"

#include <functional>
#include <string>
#include <vector>

namespace muster::cli {

// Creates the object, from `manifest` in place of the document's own JSON unless that is empty.
Result<Json> create_document(ApiClient& client, const Document& document, const std::string& ns,
                             bool dry_run, const std::string& manifest = "");
// Creates it or, if it exists, replaces it.
Result<Json> put_document(ApiClient& client, const Document& document, const std::string& ns);
// Applies a merge patch that the document leads to.
Result<Json> patch_document(ApiClient& client, const Document& document, const std::string& ns,
                            const Json& patch, bool dry_run);

// Calls `one` for each document of the files, in their order, and prints its errors: neither those
// nor documents that cannot be read keep the others from their turn, unless the coordinator does
// not answer. Returns the exit code of the first error.
int each_document(const std::vector<std::string>& files,
                  const std::function<Status(const Document&)>& one);

// The namespace of a document: its own or, if it has none, `ns`. invalid: `ns` was given, and is
// another one.
Result<std::string> namespace_of(const Document& document, const std::string& ns, bool given);

}  // namespace muster::cli
