// Document writes: documents sent to the API. Errors and warnings carry their place in the file.
#pragma once

#include "base/result.hpp"
#include "client/connect/http.hpp"
#include "client/documents/document.hpp"
#include "client/terminal/json.hpp"

#include <functional>
#include <string>
#include <vector>

namespace muster::cli {

// Creates the object, from `manifest` or, if that is empty, from the document's own JSON.
Result<Json> create_document(ApiClient& client, const Document& document, const std::string& ns,
                             bool dry_run, const std::string& manifest = "");
// Creates it or, if it exists, replaces it.
Result<Json> put_document(ApiClient& client, const Document& document, const std::string& ns);
// Applies a merge patch derived from the document.
Result<Json> patch_document(ApiClient& client, const Document& document, const std::string& ns,
                            const Json& patch, bool dry_run);

// Calls `one` for each document of the files, in order, and prints its errors. Errors and
// unreadable documents do not stop it, but an unreachable coordinator does. Returns the exit code
// of the first error.
int each_document(const std::vector<std::string>& files,
                  const std::function<Status(const Document&)>& one);

// The namespace of a document: its own or, if it has none, `ns`. invalid: `ns` was given and
// differs.
Result<std::string> namespace_of(const Document& document, const std::string& ns, bool given);

}  // namespace muster::cli
