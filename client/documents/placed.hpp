// Placed: the coordinator's errors and warnings about a document, with each field's place in the
// file.
#pragma once

#include "base/result.hpp"
#include "base/text/text_place.hpp"
#include "client/documents/document.hpp"

#include <string>

namespace muster::cli {

// "job.yaml:3:7"
std::string file_place(const std::string& file, const TextPlace& place);

// An error about a document, as lines (client/terminal/exit_codes.hpp) in file order: its
// violations, the fields that its message names as undecodable, or else the message. Unchanged if
// the coordinator could not be reached.
Error placed(Error error, const Document& document);

// The same for a warning, which may begin with the path of a field.
std::string placed_warning(const std::string& warning, const Document& document);

}  // namespace muster::cli
