// Reference: the parts of manual pages and docs that are made of the grammar and the keys, so that
// they cannot say anything else than the program. Pure; tests/unit/cli/line/reference_test.cpp
// holds the files against it.
#pragma once

#include "cli/line/grammar.hpp"
#include "cli/settings/keys.hpp"

#include <string>
#include <vector>

namespace muster::cli {

// scdoc's text of docs/man/muster.1.scd: overview and, for each verb, what it does and its flags.
// The daemons' flags are in pages of their own.
std::string man_page(const std::vector<VerbWords>& verbs);

// scdoc's list of flags of one verb.
std::string man_flags(const VerbWords& verb);

// Markdown and scdoc: all keys with flag, variable, default and meaning.
std::string keys_markdown();
std::string keys_man();

// `text` with what stands between the lines BEGIN and END replaced; as it is when one of them is
// not there.
std::string with_part(const std::string& text, const std::string& begin, const std::string& end,
                      const std::string& part);

}  // namespace muster::cli
