// Reference: generates the parts of manual pages and docs that describe the grammar and the keys,
// so that they always match the program. Pure; tests/unit/cli/grammar/reference_test.cpp compares
// the files with it.
#pragma once

#include "cli/grammar/grammar.hpp"
#include "client/settings/keys.hpp"

#include <string>
#include <vector>

namespace muster::cli {

// The scdoc source of docs/man/muster.1.scd: an overview, then each verb with its flags. The
// daemons' flags have pages of their own.
std::string man_page(const std::vector<VerbWords>& verbs);

// The flags of one verb, as scdoc.
std::string man_flags(const VerbWords& verb);

// All keys with their variable, default and meaning, in Markdown (also with the flag) and scdoc.
std::string keys_markdown();
std::string keys_man();

// Replaces the part of `text` between the lines `begin` and `end`; unchanged if either is missing.
std::string with_part(const std::string& text, const std::string& begin, const std::string& end,
                      const std::string& part);

}  // namespace muster::cli
