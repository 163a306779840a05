// Nearest: what a mistyped word was probably meant to be. Pure.
//
// The command line asks for flags, verbs and keys, the API for fields and annotations.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace muster {

// The known word nearest to a mistyped one by edit distance; empty if none is near. Words of very
// different lengths are not compared, so an unbounded word costs nothing.
std::string nearest(std::string_view word, const std::vector<std::string>& known);

// "; did you mean WORD?" or nothing.
std::string did_you_mean(std::string_view word, const std::vector<std::string>& known);

}  // namespace muster
