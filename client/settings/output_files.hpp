// Output files: `--output` and `--error` of `muster submit` and `muster run`, with the letters of
// sbatch, as the patterns of muster.dev/stdout and muster.dev/stderr.
//
//   %j, %A, %x  job       %a  task of the array, else index     %i  index
//   %N, %n      node      %r  attempt, from 0                   %p  pod       %%  a percent sign
//
// A number after the percent sign of %a, %i and %r is the fewest digits.
#pragma once

#include "base/result.hpp"
#include "core/spec/values/output_pattern.hpp"

#include <string>

namespace muster::cli {

// `dir`: what relative names begin in; absolute. `array`: the job has tasks. invalid: an unknown
// letter, or no file name.
Result<std::string> output_file_pattern(const std::string& text, const std::string& dir,
                                        bool array);

// Of the files that `muster run` writes itself, relative to the current directory. %a is the
// pod's OutputPod::task, which must be set to the index where the job has no tasks. invalid: as
// above.
Result<core::OutputPattern> run_file_pattern(const std::string& text);
// The letters of such a pattern, or of a message about it, as the user typed them.
std::string as_typed(const std::string& text);

}  // namespace muster::cli
