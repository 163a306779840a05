// Output files: `--output` and `--error` of `muster submit`, with the letters of sbatch, as the
// patterns of muster.dev/stdout and muster.dev/stderr.
//
//   %j, %A, %x  job       %a  task of the array, else index     %i  index
//   %N, %n      node      %r  attempt, from 0                   %p  pod       %%  a percent sign
//
// A number after the percent sign of %a, %i and %r is the fewest digits.
#pragma once

#include "base/result.hpp"

#include <string>

namespace muster::cli {

// `dir`: what relative names begin in; absolute. `array`: the job has tasks. invalid: an unknown
// letter, or no file name.
Result<std::string> output_file_pattern(const std::string& text, const std::string& dir,
                                        bool array);

}  // namespace muster::cli
