// TypedWords: the words of a command line up to its first argument, by flag.
//
// Where a script is among the arguments, its own flags join those that were typed, and what follows
// it is not parsed at all. Both must be known before CLI11 parses anything.
#pragma once

#include "cli/verbs/verb.hpp"

#include <string>
#include <vector>

namespace muster::cli {

struct TypedWords {
  std::vector<TypedFlag> flags;   // unknown ones too, as if they took no value
  std::vector<std::string> rest;  // from the first argument on
};

TypedWords typed_words(const FlagRows& rows, const std::vector<std::string>& words);

// The first of these words that is a long flag; empty: none is.
std::string first_flag(const FlagRows& rows, const std::vector<std::string>& words);

// The first of these words that is a flag with an empty value, "--output=", for which CLI11 would
// take the next word; empty: none is.
std::string empty_flag(const FlagRows& rows, const std::vector<std::string>& words);

// The words to parse in place of `typed` where a script is its first argument: the flags of the
// script that are not overridden, those that were typed, and the file.
std::vector<std::string> with_script_flags(const FlagRows& rows, const ScriptFlags& script,
                                           const TypedWords& typed);

}  // namespace muster::cli
